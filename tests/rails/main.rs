//! Rails under faults: a live server whose cards, PIX and transfers go through two bridges, or
//! whose PIX and transfers go through Efí, or whose cards go through Adyen. Each has records of its
//! own. Under a mixed load, answers are lost, cut, late or wrong, orders are held up on their way,
//! tokens and certificates end, payers pay twice, other amounts or nothing that was ordered,
//! notifications come in any order, twice, late or forged, the server is killed in mid-call, and
//! nobody is reached for an hour. Once the faults have ended, the books must agree with the
//! institutions' records, centavo by centavo: nothing is carried out twice, and nothing stays
//! unknown but what `again` forbids to send.
//!
//! `CENTAVO_RAILS_SEED=s` begins with another seed, `CENTAVO_RAILS_ROUNDS=n` kills n servers a
//! test.

#![allow(clippy::unwrap_used)]

mod adyen;
mod bridges;
mod load;
mod nodes;
mod reckoning;

use std::time::Duration;

use store::testkit::power_cut::Chance;
use testkit::server::{Launch, Server, must_verify};
use testkit::setting;
use testkit::wall_clock::WallClock;

use adyen::Acquirer;
use bridges::Bridges;
use load::Load;
use reckoning::{differences, settle_unknown};

/// Looks for what is not settled, half a second apart, after each restart.
const LOOKS: u32 = 12;
/// Token of the second operator.
pub(crate) const SECOND_TOKEN: &str = "second-operator-of-the-test-32-characters";
/// Both operators' tokens, and their roles.
const OPERATORS: &str = "ana:operator-of-the-test-with-32-characters,rui:second-operator-of-the-test-32-characters";
const ROLES: &str = "ana=admin,rui=decide";
/// Servers of a test that are killed.
const ROUNDS: u64 = 3;
/// How long the client certificate of a round lasts.
const CERTIFIED_FOR: Duration = Duration::from_millis(700);
/// Seconds between the restarts after the faults have ended. At the end of them everything must
/// have come to its end, and have been unchanged by each restart since it did.
const RESTARTED_AFTER: [i64; 9] = [130, 130, 5, 1_200, 1_200, 1_200, 1_200, 4_000, 4_000];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_agree_with_a_bridge_that_answers_a_repeat_the_same() {
    money_agrees("same", Bridges::start("same").await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_agree_with_a_bridge_that_refuses_a_repeat() {
    money_agrees("refused", Bridges::start("refused").await, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_agree_with_a_bridge_that_carries_a_repeat_out_again() {
    money_agrees("again", Bridges::start("again").await, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_agree_with_efi_in_pix_and_transfers() {
    money_agrees("efi", Bridges::start_with_efi().await, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn books_agree_with_adyen_in_cards() {
    money_agrees("adyen", Bridges::start_with_adyen().await, 5).await;
}

async fn money_agrees(repeats: &'static str, bridges: Bridges, number: u64) {
    let seed = setting("CENTAVO_RAILS_SEED").unwrap_or(0) + number;
    let mut chance = Chance(seed);
    let data = tempfile::tempdir().unwrap();
    let clock = WallClock::running();
    let config = bridges.settings(data.path());
    let launch = || {
        let launch = Launch::on(data.path()).live().with("CENTAVO_CONFIG", config.to_str().unwrap());
        let launch = launch.with("CENTAVO_OPS_TOKEN", OPERATORS).with("CENTAVO_OPS_ROLES", ROLES);
        clock.rule(if bridges.adyen.is_some() { Acquirer::heard(launch, data.path()) } else { launch })
    };
    // Operators end what nobody can ask about.
    let by_operators = matches!(repeats, "again" | "adyen");
    let mut server = Server::start(&launch()).await.unwrap();
    let load = Load::open(&server).await.unwrap();
    let rounds = setting("CENTAVO_RAILS_ROUNDS").unwrap_or(ROUNDS);
    // Which calls meet a certificate that has ended is the machine's choice: until one does.
    for round in (0..4 * rounds).take_while(|round| *round < rounds || !bridges.has_seen_an_end()) {
        bridges.misbehave(seed * 1_000 + round);
        bridges.certify(Some(&server), Some(CERTIFIED_FOR));
        let life = Duration::from_millis(1_500 + chance.below(1_500));
        load.run(&server, &bridges, &clock, life, || server.kill()).await;
        server.kill();
        server.wait();
        bridges.behave().await;
        let passed = [5, 70, 700, 4_000][usize::try_from(chance.below(4)).unwrap()];
        pass(&clock, &bridges, passed);
        server = Server::start(&launch()).await.unwrap();
        if bridges.adyen.is_none() {
            load.has_money(&server).await;
        }
    }
    // Nobody reaches the institutions for an hour, while callers call.
    bridges.go_away();
    load.run(&server, &bridges, &clock, Duration::from_secs(1), || server.kill()).await;
    server.wait();
    for _ in 0..2 {
        pass(&clock, &bridges, 1_800);
        server = Server::start(&launch()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        server.kill();
        server.wait();
    }
    bridges.behave().await;
    // The notifications that wait are a day late.
    pass(&clock, &bridges, if bridges.adyen.is_some() { 86_400 } else { 0 });
    server = Server::start(&launch()).await.unwrap();
    for (number, seconds) in RESTARTED_AFTER.into_iter().enumerate() {
        // Operators end what is unknown still when the institutions could be asked again.
        settled_within(&server, &bridges, &load, by_operators && number >= 5, LOOKS).await;
        server.stop().unwrap();
        pass(&clock, &bridges, seconds);
        server = Server::start(&launch()).await.unwrap();
    }
    // A busy machine takes longer for the last answers.
    let left = settled_within(&server, &bridges, &load, by_operators, 10 * LOOKS).await;
    assert!(left.is_empty(), "{repeats}, seed {seed}: {left:#?}\n{}", load.summary());
    assert_eq!(load.surprises(), [""; 0], "{repeats}, seed {seed}");
    if bridges.adyen.is_none() {
        let is_transfer = |path: &String| path.starts_with("/payouts/");
        assert!(bridges.carried_out().keys().any(is_transfer), "nothing was paid out");
    }
    assert!(bridges.has_seen_an_end(), "no certificate has ended while it was used");
    server.stop().unwrap();
    must_verify(data.path()).unwrap();
    println!("{repeats}: {}; {}", load.summary(), bridges.summary());
}

/// Time passes, for the server and for the bridges.
pub(crate) fn pass(clock: &WallClock, bridges: &Bridges, seconds: i64) {
    clock.jump(seconds);
    bridges.pass(seconds);
}

/// Waits until the books agree with the bridges; gives what differs still after some seconds.
async fn settled_within(
    server: &Server,
    bridges: &Bridges,
    load: &Load,
    by_operators: bool,
    looks: u32,
) -> Vec<String> {
    let mut left = Vec::new();
    for _ in 0..looks {
        tokio::time::sleep(Duration::from_millis(500)).await;
        if let Some(adyen) = &bridges.adyen {
            adyen.notifies_all(server).await;
        }
        if by_operators {
            settle_unknown(server, bridges).await;
        }
        // A node that was paused has not its part back yet: it is looked at again.
        left = differences(server, bridges, load).await.unwrap_or_else(|unanswered| vec![unanswered]);
        if left.is_empty() {
            break;
        }
    }
    left
}
