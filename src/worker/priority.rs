//! Priority of computing threads below the window's.

/// Of 19: a thread that was idle gets three quarters of a core that others want too.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

/// Gives the window's thread precedence over this one and those it starts: there is more to compute
/// than there are cores. Only on Linux, where niceness belongs to threads.
pub fn lower_priority() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!("a computing thread keeps its priority: {error}");
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use rustix::process::getpriority_process;

    #[test]
    fn a_thread_gives_way_with_those_it_starts_and_no_other_does() {
        let own = || getpriority_process(None).unwrap();
        let before = own();
        let niced = std::thread::spawn(move || {
            super::lower_priority();
            [own(), std::thread::spawn(own).join().unwrap()]
        });
        let wanted = (before + super::NICENESS).min(19);
        assert_eq!(niced.join().unwrap(), [wanted; 2]);
        assert_eq!(own(), before);
    }
}
