//! The database fails: it is killed and comes back, or a standby takes its place.

use super::*;

/// The process outlives its database: it refuses meanwhile, and goes on afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_crashes_comes_back_and_the_process_goes_on() {
    let Some(programs) = programs() else { return };
    let database = PostgresServer::start(&programs, &[]);
    let (address, folder) = (database.database(), tempfile::tempdir().unwrap());
    let server = Server::start(&on(folder.path(), &address)).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    for _ in 0..3 {
        let life = Duration::from_millis(700);
        // Also the requests under way are answered while the database is away.
        callers.charge_until(&server, 8, life, || database.crash()).await;
        let ready = format!("{}/readyz", server.operations);
        wait_for_status(&ready, 503).await;
        let charge = client().get(format!("{}/api/balance", server.public)).bearer_auth(&callers.api_key).send().await;
        let refused: serde_json::Value = charge.unwrap().json().await.unwrap();
        assert_eq!(refused["code"], "store_unavailable");
        database.go_on();
        wait_for_status(&ready, 200).await;
        reckon(&mut callers, &server).await;
    }
    server.stop().unwrap();
    must_verify(&address);
    println!("3 crashes of the database; {}", callers.summary());
}

/// A synchronous standby is promoted when the primary dies. What was acknowledged is in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_promoted_has_all_that_was_acknowledged() {
    let Some(programs) = programs() else { return };
    let primary = PostgresServer::start(&programs, &[]);
    let standby = primary.standby("second");
    primary.set(&["synchronous_standby_names = 'second'"]);
    primary.reload();
    let name = primary.database().rsplit('/').next().unwrap().to_owned();
    let both = format!("postgres://centavo@127.0.0.1:{},127.0.0.1:{}/{name}", primary.port(), standby.port());
    let folder = tempfile::tempdir().unwrap();
    let launch = on(folder.path(), &both).with("CENTAVO_POSTGRES_STANDBY", "on");
    let server = Server::start(&launch).await.unwrap();
    let mut callers = Callers::open(&server).await.unwrap();
    callers.charge_until(&server, 8, Duration::from_secs(2), || primary.crash()).await;
    standby.set(&["synchronous_standby_names = '*'", "synchronous_commit = local"]);
    standby.reload();
    standby.promote();
    // It has no standby of its own yet, so the process does not serve from it.
    tokio::time::sleep(Duration::from_secs(2 * TAKEOVER_SECONDS)).await;
    let ready = format!("{}/readyz", server.operations);
    wait_for_status(&ready, 503).await;
    let third = standby.standby("third");
    wait_for_status(&ready, 200).await;
    reckon(&mut callers, &server).await;
    callers.charge(&server, 8, 100).await;
    reckon(&mut callers, &server).await;
    server.stop().unwrap();
    must_verify(&both);
    drop(third);
    println!("a standby promoted; {}", callers.summary());
}

/// A database of another machine is reached over TLS, and must prove its name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_reached_over_tls_and_must_have_a_trusted_certificate() {
    let Some(programs) = programs() else { return };
    let database = PostgresServer::start(&programs, &[]);
    let address = database.database();
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (database.data().join("server.crt"), database.data().join("server.key"));
    for (path, text) in [(&certificate, made.cert.pem()), (&key, made.signing_key.serialize_pem())] {
        std::fs::write(path, text).unwrap();
        database.hand_over(path);
    }
    database.set(&["ssl = on", "ssl_cert_file = 'server.crt'", "ssl_key_file = 'server.key'"]);
    database.reload();
    let trusted = folder.path().join("trusted.pem");
    std::fs::write(&trusted, made.cert.pem()).unwrap();
    let data = folder.path().join("data");
    let address = address.replace("127.0.0.1", "localhost") + "?sslmode=verify-full";
    let launch = |trust: &Path| on(&data, &address).with("SSL_CERT_FILE", trust.display().to_string());
    let other = folder.path().join("other.pem");
    std::fs::write(&other, rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem())
        .unwrap();
    let Err(refused) = Server::start(&launch(&other)).await else { panic!("a certificate that nobody trusts") };
    assert!(refused.said.contains("certificate"), "{}", refused.said);
    let server = Server::start(&launch(&trusted)).await.unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name LIKE 'centavo-%'";
    assert_eq!(database.run_in("postgres", encrypted), "t");
    server.stop().unwrap();
}

async fn wait_for_status(url: &str, status: u16) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = client().get(url).send().await.map(|answer| answer.status().as_u16());
        if found.as_ref().is_ok_and(|found| *found == status) {
            return;
        }
        assert!(Instant::now() < deadline, "{url} is {found:?}, not {status}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
