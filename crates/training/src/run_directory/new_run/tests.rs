//! Killed at every point, several at once, and everything that may be in the way.

use std::{collections::BTreeMap, sync::LazyLock, thread};

use super::*;
use crate::run_directory::RunDirectory;

static CONTENTS: LazyLock<NewRun> = LazyLock::new(|| {
    let environment = Environment::collect("demo", "1", "cpu");
    NewRun::new(&toml::toml! { steps = 100 }, &environment).unwrap().with_file("tokenizer.json", "{}").unwrap()
});

/// What lies in a folder: the contents of files, `None` for folders.
fn listing(folder: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).ok())).collect()
}

fn whole() -> BTreeMap<String, Option<Vec<u8>>> {
    let files = CONTENTS.files.iter().map(|(name, content)| (name.clone(), Some(content.clone())));
    let folders = FOLDERS.map(|name| (name.to_owned(), None));
    let lock = (LOCK.to_owned(), Some(b"config.toml\nenvironment.json\ntokenizer.json\n".to_vec()));
    files.chain(folders).chain([lock]).collect()
}

#[track_caller]
fn assert_whole_and_alone(parent: &Path, name: &str) {
    assert_eq!(listing(&parent.join(name)), whole());
    assert_eq!(listing(parent).keys().collect::<Vec<_>>(), [name]);
}

#[test]
fn a_process_killed_at_any_point_leaves_a_start_that_can_be_made_again() {
    // Everything that is made, in its order; each but the folders may be there by half.
    let announced = whole()[LOCK].clone().unwrap();
    let mut made = vec![(LOCK.to_owned(), Some(vec![])), (LOCK.to_owned(), Some(announced))];
    made.extend(FOLDERS.map(|name| (name.to_owned(), None)));
    made.extend(CONTENTS.files.iter().map(|(name, content)| (name.clone(), Some(content.clone()))));
    let parts: Vec<_> = (0..=made.len()).flat_map(|count| [(count, false), (count, true)]).collect();
    for (count, halved) in parts {
        let parent = tempfile::tempdir().unwrap();
        let staging = parent.path().join(".a.starting");
        fs::create_dir(&staging).unwrap();
        for (index, (name, content)) in made[..count].iter().enumerate() {
            match content {
                None => fs::create_dir(staging.join(name)).unwrap(),
                Some(content) => {
                    let length = content.len() / if halved && index + 1 == count { 2 } else { 1 };
                    fs::write(staging.join(name), &content[..length]).unwrap();
                }
            }
        }
        let target = parent.path().join("a");
        let run = RunDirectory::create(&target, &CONTENTS).unwrap();
        assert_whole_and_alone(parent.path(), "a");
        assert!(matches!(RunDirectory::open(&target), Err(RunDirectoryError::Locked { .. })), "still held");
        drop(run);
        RunDirectory::open(&target).unwrap();
    }
}

#[test]
fn files_that_only_the_killed_run_had_are_cleared_too() {
    let parent = tempfile::tempdir().unwrap();
    let staging = parent.path().join(".a.starting");
    fs::create_dir(&staging).unwrap();
    for (name, content) in whole() {
        match content {
            Some(content) => fs::write(staging.join(name), content).unwrap(),
            None => fs::create_dir(staging.join(name)).unwrap(),
        }
    }
    let fewer = NewRun { files: CONTENTS.files[..2].to_vec() };
    let run = RunDirectory::create(parent.path().join("a"), &fewer).unwrap();
    let names: Vec<_> = listing(run.path()).into_keys().collect();
    assert_eq!(names, [".lock", "checkpoints", "config.toml", "environment.json", "figures"]);
}

#[test]
fn what_is_not_of_a_run_is_never_removed() {
    type Make = fn(&Path);
    let strangers: [(&str, Make); 6] = [
        ("notes.txt", |staging| fs::write(staging.join("notes.txt"), "mine").unwrap()),
        ("tokenizer.json", |staging| fs::write(staging.join("tokenizer.json"), "not announced").unwrap()),
        ("checkpoints", |staging| fs::create_dir_all(staging.join("checkpoints/full")).unwrap()),
        ("config.toml", |staging| fs::create_dir(staging.join("config.toml")).unwrap()),
        (".lock", |staging| fs::create_dir(staging.join(".lock")).unwrap()),
        ("figures", |staging| fs::write(staging.join("figures"), "a file").unwrap()),
    ];
    for (name, make) in strangers {
        let parent = tempfile::tempdir().unwrap();
        let staging = parent.path().join(".a.starting");
        fs::create_dir(&staging).unwrap();
        fs::write(staging.join("environment.json"), "{}").unwrap();
        make(&staging);
        let before = listing(&staging);
        let error = RunDirectory::create(parent.path().join("a"), &CONTENTS).unwrap_err();
        let message = error.to_string();
        assert!(matches!(error, RunDirectoryError::InTheWay { .. }), "{message}");
        assert!(message.contains(name) && message.contains("move it away"), "{message}");
        assert_eq!(listing(&staging), before);
        assert!(!parent.path().join("a").exists());
    }
    let parent = tempfile::tempdir().unwrap();
    fs::write(parent.path().join(".a.starting"), "a file").unwrap();
    let error = RunDirectory::create(parent.path().join("a"), &CONTENTS).unwrap_err();
    assert!(matches!(error, RunDirectoryError::InTheWay { .. }), "{error}");
    assert_eq!(fs::read(parent.path().join(".a.starting")).unwrap(), b"a file");
}

#[test]
#[cfg(unix)]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let parent = tempfile::tempdir().unwrap();
    let elsewhere = parent.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("config.toml"), "mine").unwrap();
    symlink(&elsewhere, parent.path().join(".a.starting")).unwrap();
    let error = RunDirectory::create(parent.path().join("a"), &CONTENTS).unwrap_err();
    assert!(matches!(error, RunDirectoryError::InTheWay { .. }), "{error}");

    fs::create_dir(parent.path().join(".b.starting")).unwrap();
    symlink(elsewhere.join("config.toml"), parent.path().join(".b.starting/.lock")).unwrap();
    let error = RunDirectory::create(parent.path().join("b"), &CONTENTS).unwrap_err();
    assert!(matches!(error, RunDirectoryError::InTheWay { .. }), "{error}");
    assert_eq!(listing(&elsewhere), BTreeMap::from([("config.toml".to_owned(), Some(b"mine".to_vec()))]));
}

#[test]
fn whatever_exists_is_refused_and_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    fs::write(at("file"), "mine").unwrap();
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir_all(at("full/inner")).unwrap();
    let mut names = vec!["file", "empty", "empty/", "full", ".", "empty/.."];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
        std::os::unix::fs::symlink(at("empty"), at("link")).unwrap();
        names.extend(["dangling", "dangling/", "link"]);
    }
    let before = listing(parent.path());
    for name in names {
        let error = RunDirectory::create(at(name), &CONTENTS).unwrap_err();
        assert!(matches!(error, RunDirectoryError::Exists { .. }), "{name}: {error}");
    }
    assert_eq!(listing(parent.path()), before);
    assert!(listing(&at("empty")).is_empty());
}

#[test]
fn an_empty_directory_that_appears_in_the_meantime_is_not_replaced() {
    // Regression: a rename silently takes the place of an empty directory.
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("a");
    let staging = Staging::enter(staging_path(&target).unwrap(), &target).unwrap();
    staging.fill(&CONTENTS).unwrap();
    fs::create_dir(&target).unwrap();
    assert!(matches!(staging.publish(&target), Err(RunDirectoryError::Exists { .. })));
    staging.discard();
    assert!(listing(&target).is_empty());
    assert_eq!(listing(parent.path()).len(), 1);
}

#[test]
fn missing_parents_are_made_and_impossible_ones_are_errors() {
    let parent = tempfile::tempdir().unwrap();
    drop(RunDirectory::create(parent.path().join("x/y/a/"), &CONTENTS).unwrap());
    assert_whole_and_alone(&parent.path().join("x/y"), "a");

    fs::write(parent.path().join("file"), "").unwrap();
    let error = RunDirectory::create(parent.path().join("file/a"), &CONTENTS).unwrap_err();
    assert!(matches!(error, RunDirectoryError::Io { .. }), "{error}");
    for nameless in [PathBuf::new(), parent.path().join("no/such/..")] {
        let error = RunDirectory::create(nameless, &CONTENTS).unwrap_err();
        assert!(matches!(error, RunDirectoryError::Io { .. }), "{error}");
    }
    assert_eq!(listing(parent.path()).keys().collect::<Vec<_>>(), ["file", "x"], "nothing was made");
}

#[test]
#[cfg(target_os = "linux")]
fn a_parent_that_cannot_be_written_to_is_a_clean_error() {
    // Nobody can make a folder in there, the superuser included.
    let parent = Path::new("/sys");
    assert!(parent.is_dir());
    let message = RunDirectory::create(parent.join("a"), &CONTENTS).unwrap_err().to_string();
    assert!(message.contains("cannot create /sys/.a.starting"), "{message}");
}

#[test]
fn one_that_is_being_made_is_locked() {
    let parent = tempfile::tempdir().unwrap();
    let target = parent.path().join("a");
    let staging = Staging::enter(staging_path(&target).unwrap(), &target).unwrap();
    staging.fill(&CONTENTS).unwrap();
    let error = RunDirectory::create(&target, &CONTENTS).unwrap_err();
    assert!(matches!(&error, RunDirectoryError::Locked { path } if *path == target), "{error}");
    assert!(matches!(RunDirectory::open(&target), Err(RunDirectoryError::NotARun { .. })));
    staging.publish(&target).unwrap();
    assert_whole_and_alone(parent.path(), "a");
}

#[test]
fn of_many_at_once_one_makes_it() {
    for _ in 0..20 {
        let parent = tempfile::tempdir().unwrap();
        let target = parent.path().join("a");
        let results: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| RunDirectory::create(&target, &CONTENTS))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1, "{results:?}");
        for error in results.iter().filter_map(|result| result.as_ref().err()) {
            let expected = matches!(error, RunDirectoryError::Exists { .. } | RunDirectoryError::Locked { .. });
            assert!(expected, "{error}");
        }
        assert_whole_and_alone(parent.path(), "a");
    }
}

#[test]
fn names_that_would_hide_or_replace_something_are_refused() {
    for name in [
        "",
        ".lock",
        ".hidden",
        "a/b",
        "a\\b",
        "a\nb",
        "config.toml",
        "environment.json",
        "environment-2.json",
        "metrics.jsonl",
        "checkpoints",
        "figures",
        "tokenizer.json",
        "..",
    ] {
        let error = CONTENTS.clone().with_file(name, "").unwrap_err();
        assert!(matches!(&error, RunDirectoryError::Name { name: found } if found == name), "{error}");
    }
    CONTENTS.clone().with_file("vocabulary.txt", "").unwrap();
}

#[test]
fn settings_that_toml_cannot_hold_are_an_error_before_anything_is_made() {
    let environment = Environment::collect("demo", "1", "cpu");
    let error = NewRun::new(&"no table", &environment).unwrap_err();
    assert!(matches!(error, RunDirectoryError::Content { .. }), "{error}");
}
