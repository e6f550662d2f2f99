//! The example of a bridge, to Stripe with Stripe's own client, before a server that plays Stripe
//! and is not ours: `centavo rail check` finds no rule broken.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::tool;

const SECRET: &str = "s3cret-of-the-bridge";

struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _ended = self.0.wait();
    }
}

/// Starts a program, and waits until it listens.
async fn listening(mut command: Command, port: u16) -> Program {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let program = Program(command.spawn().unwrap());
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return program;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("nothing listens at port {port}")
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[tokio::test]
async fn the_bridge_to_stripe_breaks_no_rule() {
    let (Some(mut stripe), Some(mut bridge)) = (tool::python("localstripe"), tool::python("stripe")) else { return };
    let (folder, ports) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    stripe.args(["-m", "localstripe", "--from-scratch", "--port", &ports[0].to_string()]).env("HOME", folder.path());
    let _stripe = listening(stripe, ports[0]).await;
    let at = format!("127.0.0.1:{}", ports[1]);
    bridge.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/rails/stripe.py")).arg(&at);
    bridge.env("STRIPE_KEY", "sk_test_12345").env("BRIDGE_SECRET", SECRET);
    bridge.env("STRIPE_API", format!("http://127.0.0.1:{}", ports[0]));
    let _bridge = listening(bridge, ports[1]).await;
    let secret = folder.path().join("secret");
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&secret).unwrap();
    writeln!(file, "{SECRET}").unwrap();
    let mut check = tokio::process::Command::new(env!("CARGO_BIN_EXE_centavo"));
    check.args(["rail", "check", &format!("http://{at}"), "--secret-file"]).arg(&secret);
    let run = check.output().await.unwrap();
    let output = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{output}{}", String::from_utf8_lossy(&run.stderr));
    let ok = output.lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!((output.lines().count(), ok), (17, 13), "{output}");
}
