//! BIFs and static NIFs, one file per OTP module.
