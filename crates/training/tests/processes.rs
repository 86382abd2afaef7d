//! What only shows between processes: the lock of a killed run, and the two signals.
//!
//! Each test starts this test binary again, with one of the ignored tests as its program.

#![cfg(unix)]

use std::{
    env, fs,
    io::{BufRead, BufReader, Read, stdin},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use training::{
    interrupt::Interrupt,
    run_directory::{Environment, NewRun, RunDirectory, RunDirectoryError},
};

const PATH: &str = "TRAINING_TEST_PATH";

fn child(test: &str, path: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(PATH, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Where a child stays until it is killed; should its test fail, the pipe closes and the child ends by itself.
fn stay() {
    let _ = stdin().read_to_end(&mut Vec::new());
}

/// Waits until the child says so.
fn wait_for(output: &mut impl BufRead, word: &str) {
    let found = output.lines().any(|line| line.unwrap().ends_with(word));
    assert!(found, "the child ended without saying `{word}`");
}

#[test]
fn a_killed_process_releases_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut holder = child("child_holds_a_run", path.to_str().unwrap());
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    wait_for(&mut output, "holding");
    // The lock was taken before the directory got its name.
    assert!(matches!(RunDirectory::open(&path), Err(RunDirectoryError::Locked { .. })));
    assert!(matches!(RunDirectory::create(&path, &contents()), Err(RunDirectoryError::Exists { .. })));
    holder.kill().unwrap();
    assert_eq!(holder.wait().unwrap().signal(), Some(9));
    RunDirectory::open(&path).unwrap();
}

#[test]
#[ignore = "the program of another test"]
fn child_holds_a_run() {
    let Some(path) = env::var_os(PATH) else { return };
    let _run = RunDirectory::create(PathBuf::from(path), &contents()).unwrap();
    println!("\nholding");
    stay();
}

#[test]
fn of_several_processes_one_makes_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let children: Vec<_> = (0..4).map(|_| child("child_tries_to_make_a_run", path.to_str().unwrap())).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().unwrap().stdout);
    let outputs: Vec<_> = outputs.map(|output| String::from_utf8(output).unwrap()).collect();
    let count = |word: &str| outputs.iter().filter(|output| output.lines().any(|line| line == word)).count();
    assert_eq!((count("made"), count("refused")), (1, 3), "{outputs:?}");
    RunDirectory::open(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
#[ignore = "the program of another test"]
fn child_tries_to_make_a_run() {
    let Some(path) = env::var_os(PATH) else { return };
    match RunDirectory::create(PathBuf::from(path), &contents()) {
        Ok(_run) => println!("\nmade"),
        Err(RunDirectoryError::Exists { .. } | RunDirectoryError::Locked { .. }) => println!("\nrefused"),
        Err(error) => panic!("{error}"),
    }
}

fn contents() -> NewRun {
    NewRun::new(&toml::Table::new(), &Environment::collect("test", "1", "cpu")).unwrap()
}

#[test]
fn the_first_signal_asks_and_the_second_one_ends() {
    for signal in ["INT", "TERM"] {
        let mut process = child("child_waits_for_an_interrupt", "");
        let mut output = BufReader::new(process.stdout.take().unwrap());
        // Kept open, which `wait` would not.
        let _input = process.stdin.take();
        let id = process.id().to_string();
        let send = || {
            let sent = Command::new("kill").args(["-s", signal, &id]).status().unwrap();
            assert!(sent.success());
        };
        wait_for(&mut output, "waiting");
        // Twice in a row, as `timeout` does: it counts once.
        send();
        send();
        wait_for(&mut output, "asked to stop");
        std::thread::sleep(std::time::Duration::from_millis(1100));
        send();
        assert_eq!(process.wait().unwrap().code(), Some(130), "SIG{signal}");
        let mut rest = String::new();
        output.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("test result"), "ended at once");
    }
}

#[test]
#[ignore = "the program of another test"]
fn child_waits_for_an_interrupt() {
    if env::var_os(PATH).is_none() {
        return;
    }
    let interrupt = Interrupt::install().unwrap();
    println!("\nwaiting");
    while !interrupt.is_set() {
        std::thread::yield_now();
    }
    println!("\nasked to stop");
    stay();
}
