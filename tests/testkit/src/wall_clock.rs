//! The wall clock of a server, set by the test.

use std::cell::Cell;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use chrono::{DateTime, TimeDelta, Utc};
use tempfile::TempDir;

use crate::server::Launch;

/// A library that stands between a server and its wall clock, and the file that sets it.
pub struct WallClock {
    library: PathBuf,
    setting: PathBuf,
    file: File,
    /// What is added to real time while it runs.
    offset: Cell<TimeDelta>,
    /// The same when the server that goes by it began.
    at_start: Cell<TimeDelta>,
    _folder: TempDir,
}

const OFFSET: u64 = 0;
const STANDING_AT: u64 = 8;

impl WallClock {
    /// A clock that runs with the machine's until it is set.
    pub fn running() -> Self {
        let clock = Self::standing_at(&Utc::now().to_rfc3339());
        clock.jump(0);
        clock
    }

    /// A clock that stands at a time.
    pub fn standing_at(time: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let library = build(folder.path());
        let setting = folder.path().join("wall-clock");
        let file = File::options().read(true).write(true).create_new(true).open(&setting).unwrap();
        file.set_len(16).unwrap();
        let clock =
            Self { library, setting, file, offset: Cell::default(), at_start: Cell::default(), _folder: folder };
        let time: DateTime<Utc> = time.parse().unwrap();
        clock.offset.set(time - Utc::now());
        clock.stand();
        clock
    }

    /// Lets the server go by this clock.
    pub fn rule<'a>(&self, launch: Launch<'a>) -> Launch<'a> {
        let library = self.library.to_str().unwrap();
        launch.with("LD_PRELOAD", library).with("CENTAVO_TEST_WALL_CLOCK", self.setting.to_str().unwrap())
    }

    /// Stops it where it is.
    pub fn stand(&self) {
        let now = Utc::now() + self.offset.get();
        self.write(STANDING_AT, now.timestamp_millis() / 1000 * 1_000_000_000);
    }

    /// Lets it run, from where it would be had it never stood still.
    pub fn run(&self) {
        self.write(OFFSET, self.offset.get().num_nanoseconds().unwrap());
        self.write(STANDING_AT, 0);
    }

    /// Lets it run, from where it stands.
    pub fn go_on(&self) {
        let mut stood_at = [0; 8];
        self.file.read_exact_at(&mut stood_at, STANDING_AT).unwrap();
        let stood_at = DateTime::from_timestamp_nanos(i64::from_ne_bytes(stood_at));
        self.offset.set(stood_at - Utc::now());
        self.run();
    }

    /// A server begins now, which trusts it.
    pub fn begins(&self) {
        self.at_start.set(self.offset.get());
    }

    /// Sets it to where it would be had nobody set it since the server began; it runs from there.
    pub fn set_right(&self) {
        self.offset.set(self.at_start.get());
        self.run();
    }

    /// Moves it forward or back by this number of seconds; it runs from there.
    pub fn jump(&self, seconds: i64) {
        self.offset.set(self.offset.get() + TimeDelta::seconds(seconds));
        self.run();
    }

    /// One number at a time: a reader between the two sees the time before or the time after.
    fn write(&self, place: u64, nanoseconds: i64) {
        self.file.write_all_at(&nanoseconds.to_ne_bytes(), place).unwrap();
    }
}

fn build(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    fs::write(&source, include_str!("wall_clock.c")).unwrap();
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&compiler).args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).output();
    let built =
        built.unwrap_or_else(|error| panic!("the clock needs a C compiler, and {compiler} can't be run: {error}"));
    assert!(built.status.success(), "{compiler} refused the clock:\n{}", String::from_utf8_lossy(&built.stderr));
    library
}
