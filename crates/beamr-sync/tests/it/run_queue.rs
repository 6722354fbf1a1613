use beamr_sync::run_queue::{LOW_SKIPS, Refund, SLICE, STEAL_AT_MOST};
use beamr_sync::{Priority, RunQueue, Task};

#[derive(Debug, PartialEq, Clone, Copy)]
struct T {
    name: u32,
    tenant: u32,
    weight: u32,
    bound: bool,
}

impl Task for T {
    fn tenant(&self) -> u32 {
        self.tenant
    }
    fn weight(&self) -> u32 {
        self.weight
    }
    fn is_bound(&self) -> bool {
        self.bound
    }
}

fn task(name: u32) -> T {
    tenants(name, 0)
}

fn tenants(name: u32, tenant: u32) -> T {
    T {
        name,
        tenant,
        weight: 1,
        bound: false,
    }
}

fn names(queue: &RunQueue<T>) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop().map(|(_, task)| task.name)).collect()
}

#[test]
fn urgent_first_then_in_order() {
    let queue = RunQueue::new();
    queue.push(Priority::Normal, task(1));
    queue.push(Priority::High, task(2));
    queue.push(Priority::Normal, task(3));
    queue.push(Priority::Max, task(4));
    assert_eq!(queue.push(Priority::High, task(5)), 5);
    assert_eq!(queue.len_of(Priority::High), 2);
    assert_eq!(names(&queue), [4, 2, 5, 1, 3]);
    assert!(queue.is_empty() && queue.len_of(Priority::High) == 0);
}

#[test]
fn low_is_passed_over() {
    let queue = RunQueue::new();
    queue.push(Priority::Low, task(100));
    assert_eq!(queue.pop(), Some((Priority::Low, task(100))), "alone");
    queue.push(Priority::Low, task(100));
    queue.push(Priority::Normal, task(0));
    let mut normal = 0;
    loop {
        let (priority, popped) = queue.pop().unwrap();
        if priority == Priority::Low {
            break;
        }
        normal += 1;
        queue.push(priority, popped);
    }
    assert_eq!(normal, LOW_SKIPS);
    assert_eq!(queue.len_of(Priority::Low), 0);
    assert_eq!(queue.len_of(Priority::Normal), 1);
}

/// Runs tasks that use `used(tenant)` reductions each and returns the reductions per tenant.
fn shares(tasks: &[T], turns: usize, used: impl Fn(u32) -> u32) -> [u64; 3] {
    let queue = RunQueue::new();
    for task in tasks {
        queue.push(Priority::Normal, *task);
    }
    let mut shares = [0; 3];
    let mut refund = None;
    for _ in 0..turns {
        let (priority, task) = queue.pop_after(refund).unwrap();
        let used = used(task.tenant);
        shares[task.tenant as usize] += u64::from(used);
        refund = Some(Refund {
            priority,
            tenant: task.tenant,
            reductions: SLICE - used,
        });
        queue.push(priority, task);
    }
    shares
}

#[test]
fn tenants_share_reductions_whatever_their_processes() {
    // Tenant 1 has ten processes, tenant 2 has two that use a quarter of a slice.
    let mut tasks: Vec<_> = (0..10).map(|n| tenants(n, 1)).collect();
    tasks.extend((0..2).map(|n| tenants(n, 2)));
    let [_, one, two] = shares(
        &tasks,
        5000,
        |tenant| if tenant == 1 { SLICE } else { SLICE / 4 },
    );
    assert!(one.abs_diff(two) <= 3 * u64::from(SLICE), "{one} {two}");
    for task in &mut tasks {
        task.weight = task.tenant;
    }
    let [_, one, two] = shares(&tasks, 5000, |_| SLICE);
    assert!(
        (2 * one).abs_diff(two) <= 6 * u64::from(SLICE),
        "{one} {two}"
    );
}

#[test]
fn many_tenants_come_and_go() {
    let queue = RunQueue::new();
    for round in 0..3 {
        for tenant in 0..500 {
            queue.push(Priority::Normal, tenants(tenant, tenant * 7 + round));
        }
        assert_eq!(names(&queue), (0..500).collect::<Vec<_>>());
    }
    // The number that marks a lane without a tenant is a tenant like any other.
    queue.push(Priority::Normal, tenants(1, u32::MAX));
    queue.push(Priority::Normal, tenants(2, 5));
    queue.push(Priority::Normal, tenants(3, u32::MAX));
    assert_eq!(names(&queue), [1, 2, 3]);
}

#[test]
fn a_thief_takes_half_and_leaves_what_is_bound() {
    let (victim, thief) = (RunQueue::new(), RunQueue::new());
    assert_eq!(thief.steal_from(&victim), None);
    for name in 0..10 {
        let bound = name == 1;
        victim.push(
            Priority::Normal,
            T {
                bound,
                ..task(name)
            },
        );
    }
    victim.push(Priority::High, task(50));
    assert_eq!(thief.steal_from(&victim), Some((Priority::High, task(50))));
    assert_eq!(names(&thief), [0, 2, 3, 4, 5]);
    assert_eq!(victim.len(), 5);
    assert_eq!(names(&victim), [6, 7, 8, 9, 1]);
    victim.push(
        Priority::Max,
        T {
            bound: true,
            ..task(0)
        },
    );
    assert_eq!(thief.steal_from(&victim), None);
    assert_eq!(victim.len_of(Priority::Max), 1);
    for name in 0..1000 {
        victim.push(Priority::Normal, task(name));
    }
    let mut loot = Vec::new();
    assert_eq!(victim.steal_half(&mut loot), STEAL_AT_MOST);
    assert_eq!(loot.len() + victim.len(), 1001);
}
