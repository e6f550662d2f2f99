#!/usr/bin/env bash
# ractor 0.16.5 with tokio 1.54.1 (crates.io): memory of 10,000 actors without state that wait for their first message.
# Guessed: a task and an empty mailbox, some hundred bytes.
# Seen: 5.7 KB each, so a million accounts of one actor each take 6 GB before they hold a centavo. An actor has several
# channels, and a channel of tokio has room for 32 messages from its beginning: 0.8 KB with messages of eight bytes.
set -euo pipefail
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work"; mkdir src
cat > Cargo.toml <<'TOML'
[package]
name = "idle"
version = "0.0.0"
edition = "2024"
[dependencies]
ractor = { version = "=0.16.5", default-features = false, features = ["tokio_runtime"] }
tokio = { version = "=1.54.1", features = ["rt", "macros", "sync"] }
TOML
cat > src/main.rs <<'RUST'
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

static HELD: AtomicUsize = AtomicUsize::new(0);
struct Counting;
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), SeqCst);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), SeqCst);
        unsafe { System.dealloc(at, layout) }
    }
}
#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Account;
impl Actor for Account {
    type Msg = u64;
    type State = ();
    type Arguments = ();
    async fn pre_start(&self, _: ActorRef<u64>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

const COUNT: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut accounts = Vec::with_capacity(COUNT);
    let before = HELD.load(SeqCst);
    for _ in 0..COUNT {
        accounts.push(Actor::spawn(None, Account, ()).await.expect("an actor"));
    }
    let of_actor = (HELD.load(SeqCst) - before) / COUNT;
    let mut channels = Vec::with_capacity(COUNT);
    let before = HELD.load(SeqCst);
    channels.extend((0..COUNT).map(|_| tokio::sync::mpsc::unbounded_channel::<u64>()));
    let of_channel = (HELD.load(SeqCst) - before) / COUNT;
    println!("{} {}", of_actor.div_ceil(100) * 100, of_channel.div_ceil(100) * 100);
}
RUST
seen=$(CARGO_TARGET_DIR=$work/target cargo run --quiet --release)
echo "ractor 0.16.5, tokio 1.54.1: bytes of an idle actor, and of an empty channel, rounded up: $seen"
[ "$seen" = "5700 800" ]
