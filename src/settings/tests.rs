//! Settings from flags, variables and files, as a whole.

use crate::server::checkpoints::CheckpointSchedule;
use books::export::{Format, Request};
use clap::{CommandFactory, Parser};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::{Cut, Sequence};

use crate::server::named_rails::settings::TABLES;

use super::args::*;
use super::checked::*;
use super::privacy;
use super::secrets::SecretSource;
use super::values::*;

fn serve(flags: &[&str]) -> ServeArgs {
    match Args::try_parse_from(["centavo", "serve"].iter().chain(flags)).unwrap().command {
        Command::Serve { args, .. } => args,
        command => panic!("{command:?}"),
    }
}

fn with_file(toml: &str, flags: &[&str]) -> Result<Settings, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(toml.as_bytes()).unwrap();
    let typed = ["centavo", "serve", "--config", file.path().to_str().unwrap()];
    let typed: Vec<_> = typed.iter().chain(flags).map(|word| (*word).to_owned()).collect();
    match parse(program(), &typed) {
        Ok(Arguments { args: Args { command: Command::Serve { args, .. } }, .. }) => {
            args.settings().map_err(|error| error.to_string())
        }
        Ok(other) => panic!("{:?}", other.args),
        Err(ArgumentsError::File(error)) => Err(error.to_string()),
        Err(ArgumentsError::Typed(error)) => panic!("{error}"),
    }
}

#[test]
fn the_command_line_is_consistent() {
    Args::command().debug_assert();
}

#[test]
fn an_error_names_what_the_person_wrote() {
    let name = "CENTAVO_LISTEN";
    let wrong = || Args::command().try_get_matches_from(["centavo", "serve", "--listen", "here"]).unwrap_err();
    let said = |typed: &[&str]| {
        let typed: Vec<_> = typed.iter().map(|word| (*word).to_owned()).collect();
        named_as_written(wrong(), &Args::command(), &typed).to_string()
    };
    for typed in [&["--listen", "here"][..], &["--listen=here"], &[]] {
        assert!(said(typed).contains("'--listen <ADDRESS:PORT>'") && !said(typed).contains(name), "{typed:?}");
    }
}

#[test]
fn variables_whose_values_are_hidden_leave_the_environment() {
    let mut hidden = vec!["CENTAVO_MASTER_KEY".to_owned()];
    let mut command = Args::command();
    command.build();
    for arg in command.get_subcommands().flat_map(clap::Command::get_arguments) {
        let name = arg.get_env().filter(|_| arg.is_hide_env_values_set());
        hidden.extend(name.map(|name| name.to_str().unwrap().to_owned()));
    }
    hidden.sort();
    hidden.dedup();
    let mut secrets = privacy::SECRETS.to_vec();
    secrets.sort_unstable();
    assert_eq!(hidden, secrets);
}

#[test]
fn nothing_given_means_the_defaults() {
    let settings = serve(&[]).settings().unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(settings.ops_listen.to_string(), "127.0.0.1:8081");
    assert_eq!(settings.data, Path::new("./data"));
    assert!(!settings.store.is_postgres());
    assert_eq!((settings.sandbox, settings.rate_limits.is_some(), settings.log_format), (false, true, LogFormat::Text));
    assert!(settings.webhook_allow.is_empty());
    assert_eq!((settings.sandbox_folder(), settings.shares_sandbox()), (PathBuf::from("./data/sandbox"), false));
    assert_eq!((settings.ops_token, settings.master_key), (SecretSource::Data, SecretSource::Data));
    let (folder, every) = ("./data/checkpoints".into(), Duration::from_secs(3_600));
    assert_eq!(settings.checkpoints, Some(CheckpointSchedule { folder, is_own: true, every }));
}

#[test]
fn checkpoints_stand_in_the_data_folder_unless_told_otherwise() {
    let of = |to: Option<&str>, every| checkpoint_schedule(to.map(str::to_owned), every, Path::new("/srv/books"));
    let hourly = Duration::from_secs(3_600);
    for (to, every, expected) in [
        (None, 60, Some(("/srv/books/checkpoints", hourly))),
        (None, 2, Some(("/srv/books/checkpoints", hourly / 30))),
        (Some("/mnt/auditor"), 60, Some(("/mnt/auditor", hourly))),
        (Some("./off"), 60, Some(("./off", hourly))),
        (Some("off"), 60, None),
    ] {
        let is_own = to.is_none();
        let expected = expected.map(|(folder, every)| CheckpointSchedule { folder: folder.into(), is_own, every });
        assert_eq!(of(to, every).unwrap(), expected, "{to:?}");
    }
    for wrong in ["https://audit.example.com/in", ""] {
        assert!(of(Some(wrong), 60).is_err(), "{wrong}");
    }
}

#[test]
fn flags_come_before_the_file() {
    let toml = "
        listen = '0.0.0.0:9000'
        data = '/srv/books'
        ops_token = 'ana:one-token-of-ana-with-32-characters'
        ops_roles = 'ana=admin'
        sandbox = 'on'
        master_key = '00'
        log = 'warn,centavo=debug'
        webhook_allow = '10.0.0.0/8, ::1'
        rate_limit = 'off'
        log_format = 'json'
    ";
    let settings = with_file(toml, &[]).unwrap();
    assert_eq!(settings.listen.to_string(), "0.0.0.0:9000");
    assert_eq!(settings.data, Path::new("/srv/books"));
    assert_eq!((settings.sandbox, settings.rate_limits.is_some(), settings.log_format), (true, false, LogFormat::Json));
    assert_eq!(settings.webhook_allow.len(), 2);
    assert_eq!(settings.log.as_deref(), Some("warn,centavo=debug"));
    assert_eq!(settings.master_key, SecretSource::Text("00".to_owned().into()));
    assert_eq!(settings.ops_token, SecretSource::Text("ana:one-token-of-ana-with-32-characters".to_owned().into()));

    let flags = ["--listen", "127.0.0.1:1", "--sandbox", "off", "--rate-limit", "on", "--log-format", "text"];
    let settings = with_file(toml, &flags).unwrap();
    assert_eq!(settings.listen.to_string(), "127.0.0.1:1");
    assert_eq!(settings.data, Path::new("/srv/books"));
    assert_eq!((settings.sandbox, settings.rate_limits.is_some(), settings.log_format), (false, true, LogFormat::Text));
}

#[test]
fn a_flag_of_a_secret_comes_before_both_its_names_in_the_file() {
    let token = "ana:one-token-of-ana-with-32-characters";
    let toml = format!("ops_token = '{token}'\nmaster_key = '00'\nstore_file = 'database'");
    let flags = ["--ops-token-file", "tokens", "--master-key-file", "key", "--store", "sled"];
    let settings = with_file(&toml, &flags).unwrap();
    assert_eq!(settings.ops_token, SecretSource::File("tokens".into()));
    assert_eq!(settings.master_key, SecretSource::File("key".into()));
    assert_eq!(settings.store.place(), "sled");
}

#[test]
fn other_processes_are_served_where_they_are_said_to_be() {
    let toml = "store = 'postgres://db/books'\npeer_listen = ':8082'\npeer_address = 'node-1.internal:8082'\n\
                peer_tls_cert = 'chain.pem'\npeer_tls_key = 'key.pem'";
    let peers = with_file(toml, &["--peer-tls-ca", "ca.pem"]).unwrap().peers.unwrap();
    assert_eq!((peers.listen.to_string().as_str(), peers.address.as_str()), ("0.0.0.0:8082", "node-1.internal:8082"));
    let tls = peers.tls.unwrap();
    assert_eq!((tls.own.key.as_path(), tls.authority.as_path()), (Path::new("key.pem"), Path::new("ca.pem")));
    assert!(serve(&[]).settings().unwrap().peers.is_none());
}

/// An institution as a table.
fn table(name: &str) -> String {
    format!(
        "[rail.{name}]\nkind = 'api_pix'\ndialect = 'bacen'\nurl = 'http://127.0.0.1:9'\n\
         token_url = 'http://127.0.0.1:9/token'\nclient_id = 'shop'\nclient_secret_file = 'secret'\nkey = 'k'\n"
    )
}

#[test]
fn institutions_stand_in_tables_of_the_file() {
    let listener = "rails_listen = ':8083'\nrails_path_secret_file = 'path-secret'\n";
    let toml = format!("{listener}[rails]\npix = 'itau'\n{}{}", table("bb"), table("itau"));
    let settings = with_file(&toml, &[]).unwrap();
    let rails = settings.rails.unwrap();
    assert_eq!(rails.current.pix.unwrap().as_str(), "itau");
    let lines: Vec<_> = rails.by_name.iter().map(|(name, rail)| (name.as_str(), rail.line)).collect();
    assert_eq!((rails.line, lines), (3, vec![("bb", 5), ("itau", 13)]));
    let bells = settings.bells.unwrap();
    assert_eq!((bells.listen.port(), bells.tls, bells.client_authority), (8083, None, None));
    assert_eq!(bells.path_secret.as_deref(), Some(Path::new("path-secret")));
    let callback = format!("{listener}{}callback_url = 'https://pay.example.com:8443/secret/bb'\n", table("bb"));
    let rails = with_file(&callback, &[]).unwrap().rails.unwrap();
    let urls: Vec<_> = rails.by_name.values().map(|rail| rail.callback_url.as_deref()).collect();
    assert_eq!(urls, [Some("https://pay.example.com:8443/secret/bb")]);
    let documented = format!("{}receiver_document = '12ABC34501DE35'\npsp_ispb = '00000208'\n", table("bb"));
    let parties = with_file(&documented, &[]).unwrap().rails.unwrap().by_name.into_values().next().unwrap().parties;
    assert_eq!(
        parties.receiver_document.as_deref().zip(parties.psp_ispb.as_deref()),
        Some(("12ABC34501DE35", "00000208"))
    );
    assert_eq!(parties.acquirer_document, None);
    // Those of earlier charges alone, and other spellings of TOML.
    assert!(with_file(&table("bb"), &[]).unwrap().rails.unwrap().current.pix.is_none());
    let inline = "rail.b_2 = {kind = 'api_pix', dialect = 'efi', client_id = 'a', key = 'k'}\nrails.pix = 'b_2'";
    assert_eq!(with_file(inline, &[]).unwrap().rails.unwrap().current.pix.unwrap().as_str(), "b_2");
    assert!(with_file("data = '/srv'", &[]).unwrap().rails.is_none());
    assert!(with_file("[rails]", &[]).unwrap().rails.unwrap().by_name.is_empty());
    let demo = ["demo", "--rails-listen", "127.0.0.1:9"];
    let Command::Demo(demo) = Args::try_parse_from(["centavo"].iter().chain(&demo)).unwrap().command else {
        panic!("another command")
    };
    assert!(demo.settings().unwrap().bells.is_none());
}

#[test]
fn a_wrong_table_is_named_with_its_line_and_without_its_values() {
    let one = |line: &str| format!("{}{line}\n", table("itau"));
    let cases = [
        ("[rails]\npix = 'itau'".to_owned(), "at line 2: rails.pix: there is no table [rail.itau]"),
        ("[rails]\npix = 'It au'".to_owned(), "at line 2: rails.pix: a name is 1 to 16 small letters"),
        ("[rails]\npix = 7".to_owned(), "at line 2: rails.pix: a name is"),
        ("\n[rails]\ncard = 'adyen'".to_owned(), "at line 3: rails.card: there is no table [rail.adyen]"),
        (
            format!("[rails]\npayout = 'bb'\n{}", table("bb")),
            "at line 2: rails.payout: the kind of [rail.bb] can't be the payout rail",
        ),
        ("[rails]\npics = 'efi'".to_owned(), "at line 2: rails: unknown field `pics`, expected `card`"),
        ("rails = 'itau'".to_owned(), "at line 1: rails: expected a table"),
        ("rail = 'itau'".to_owned(), "at line 1: rail: expected a table"),
        ("rail.itau = 'tesouro'".to_owned(), "at line 1: rail.itau: expected a table"),
        ("[[rail.itau]]\nkind = 'api_pix'".to_owned(), "rail.itau: expected a table"),
        ("[rail.Itau]\nkind = 'api_pix'".to_owned(), "at line 1: rail: a name is 1 to 16 small letters"),
        ("[rail.itau]\nkey = 'k'".to_owned(), "at line 1: rail.itau.kind: expected one of adyen, api_pix, efi, http"),
        (
            "[rail.itau]\nkey = 'k'\nkind = 'tesouro'".to_owned(),
            "at line 3: rail.itau.kind: expected one of adyen, api_pix, efi, http",
        ),
        ("[rail.itau]\nkind = 'api_pix'".to_owned(), "at line 1: rail.itau: missing field `dialect`"),
        (one("client_secret = 'tesouro'"), "at line 9: rail.itau: unknown field `client_secret`"),
        (one("scope = 7"), "at line 9: rail.itau.scope: expected "),
        (one("headers = 'tesouro'"), "at line 9: rail.itau.headers: expected a map"),
        (one("headers = {x = 7}"), "at line 9: rail.itau.headers: expected "),
        (one("").replace("'bacen'", "'tesouro'"), "at line 3: rail.itau.dialect: expected "),
        (one("callback_url = 'http://tesouro'"), "at line 9: rail.itau.callback_url: expected https://HOST"),
        (one("callback_url = 'https://tesouro/'"), "at line 9: rail.itau.callback_url: expected https://HOST"),
        (one("callback_url = 7"), "at line 9: rail.itau.callback_url: expected https://HOST"),
        (one("receiver_document = '11.222.333/0001-81'"), "at line 9: rail.itau.receiver_document: expected a CNPJ"),
        (one("receiver_document = '11222333000182'"), "at line 9: rail.itau.receiver_document: expected a CNPJ"),
        (one("psp_ispb = 208"), "at line 9: rail.itau.psp_ispb: expected the 8"),
        (one("psp_ispb = '208'"), "at line 9: rail.itau.psp_ispb: expected the 8"),
        (one("acquirer_document = '11222333000181'"), "rail.itau.acquirer_document: this kind can't be the card rail"),
    ];
    for (toml, reason) in cases {
        let error = with_file(&toml, &[]).unwrap_err();
        assert!(error.contains(reason) && error.contains("the configuration file /"), "{error} for {reason}");
        assert!(!error.contains("tesouro"), "{error}");
    }
}

#[test]
fn institutions_and_their_listener_are_refused_where_they_make_no_sense() {
    let rail = table("itau");
    let guard = ["--rails-path-secret-file", "s"];
    let listen = ["--rails-listen", "127.0.0.1:8083"];
    let (cert, key) = (["--rails-tls-cert", "c"], ["--rails-tls-key", "k"]);
    let both = [listen, guard].concat();
    let ringing = format!("{rail}callback_url = 'https://a.example/x'");
    let cases: [(&str, &[&str], &str); 11] = [
        (&ringing, &[], "at line 1: rail.itau.callback_url has no meaning without CENTAVO_RAILS_LISTEN"),
        (&rail, &["--sandbox"], "at line 1: a sandbox plays the institutions"),
        ("\n[rails]", &["--sandbox"], "at line 2: a sandbox plays the institutions"),
        (&rail, &listen, "CENTAVO_RAILS_LISTEN: anybody could call there: set CENTAVO_RAILS_TLS_CLIENT_CA"),
        (&rail, &[listen, cert, key].concat(), "anybody could call there"),
        (
            &rail,
            &[&listen[..], &["--rails-tls-client-ca", "a"]].concat(),
            "has no meaning without CENTAVO_RAILS_TLS_CERT",
        ),
        (&rail, &[&both[..], &cert].concat(), "CENTAVO_RAILS_TLS_CERT and CENTAVO_RAILS_TLS_KEY belong together"),
        (&rail, &guard, "CENTAVO_RAILS_PATH_SECRET_FILE has no meaning without CENTAVO_RAILS_LISTEN"),
        (
            &rail,
            &["--rails-tls-client-ca", "a"],
            "CENTAVO_RAILS_TLS_CLIENT_CA has no meaning without CENTAVO_RAILS_LISTEN",
        ),
        ("", &both, "CENTAVO_RAILS_LISTEN has no meaning without an institution"),
        (&rail, &[&both[..], &["--listen", "127.0.0.1:8083"]].concat(), "can't share the address 127.0.0.1:8083"),
    ];
    for (toml, flags, reason) in cases {
        let error = with_file(toml, flags).unwrap_err();
        assert!(error.contains(reason), "{error} for {reason}");
    }
    assert!(with_file(&rail, &["--store", "postgres://db/books"]).is_ok(), "one process");
}

#[test]
fn switches_have_many_spellings() {
    let cases: [(&[&str], bool); 6] = [
        (&[], false),
        (&["--sandbox"], true),
        (&["--sandbox", "1"], true),
        (&["--sandbox=true"], true),
        (&["--sandbox=0"], false),
        (&["--sandbox", "off"], false),
    ];
    for (flags, sandbox) in cases {
        assert_eq!(serve(flags).sandbox, sandbox, "{flags:?}");
    }
    assert!(!serve(&["--rate-limit", "off"]).rate_limit);
    assert!(Args::try_parse_from(["centavo", "serve", "--sandbox", "maybe"]).is_err());
}

#[test]
fn a_sandbox_that_others_may_have_too_is_shared() {
    let database = "store = 'postgres://db/books'\ndata = '/srv/books'";
    let cases: [(&str, &[&str], &str, bool); 4] = [
        (database, &[], "/srv/books/sandbox", true),
        (database, &["--sandbox-dir", "/shared"], "/shared", true),
        ("sandbox_dir = '/shared'", &[], "/shared", true),
        ("sandbox_dir = '/shared'", &["--sandbox-dir", "/other"], "/other", true),
    ];
    for (toml, flags, folder, is_shared) in cases {
        let settings = with_file(toml, flags).unwrap();
        assert_eq!((settings.sandbox_folder(), settings.shares_sandbox()), (PathBuf::from(folder), is_shared));
    }
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    let cases: [(&str, &[&str], &str); 30] = [
        ("", &["--peer-listen", "127.0.0.1:9"], "CENTAVO_PEER_LISTEN wants a PostgreSQL store"),
        ("peer_tls_cert = 'a'", &[], "CENTAVO_PEER_TLS_CERT has no meaning without CENTAVO_PEER_LISTEN"),
        ("store = 'postgres://db/books'\npeer_listen = ':8082'", &[], "card numbers pass there"),
        (
            "store = 'postgres://db/books'",
            &["--peer-listen", "127.0.0.1:8081"],
            "can't share the address 127.0.0.1:8081",
        ),
        ("ops_roles = 'operator=root'", &[], "a role is read, decide or admin"),
        (
            "",
            &["--ops-token", "ana:one-token-of-ana-with-32-characters", "--ops-roles", "ana=admin,rui=read"],
            "names rui, who has no token",
        ),
        ("ops_token = 'a'\nops_token_file = 'b'", &[], "CENTAVO_OPS_TOKEN and CENTAVO_OPS_TOKEN_FILE are both set"),
        ("master_key = 'a'\nmaster_key_file = 'b'", &[], "CENTAVO_MASTER_KEY and CENTAVO_MASTER_KEY_FILE are both"),
        ("", &["--store", "postgres://db:port/books"], "the address of the database (CENTAVO_STORE) is wrong"),
        ("store = 'postgresql://db/books'\npostgres_allow = 'all'", &[], "`all` is neither fsync_off nor"),
        ("store = 'a'\nstore_file = 'b'", &[], "CENTAVO_STORE and CENTAVO_STORE_FILE are both set"),
        ("store = 'postgres://db/books'\npostgres_takeover_seconds = 301", &[], "301 is not in 1..=300"),
        ("", &["--store", "sqlite"], "the store must be sled"),
        ("", &["--listen", "127.0.0.1:8081"], "can't share the address 127.0.0.1:8081"),
        ("", &["--ops-token", "one,two"], "each must be name:token"),
        ("", &["--ops-token", "fifteen-letters"], "at least 32 characters"),
        ("log = 'loud'", &[], "`loud` is no level"),
        ("sandbox = 'maybe'", &[], "at line 1"),
        ("", &["--webhook-allow", "10.0.0.0/99"], "`10.0.0.0/99` is not a network"),
        ("listem = '127.0.0.1:1'", &[], "at line 1: unknown field `listem`"),
        ("sandbox = true\nlisten = 'here'", &[], "at line 2"),
        ("rate_limit = 'maybe'", &[], "at line 1: rate_limit: expected true, false, \"on\" or \"off\""),
        ("card_rate_limit = 0", &[], "card_rate_limit: expected a whole number: number would be zero"),
        ("retention_months = 59", &[], "retention_months: expected a whole number: 59 is not in 60..=1200"),
        ("partitions = 70000", &[], "partitions: expected a whole number: 70000 is not in 1..=64"),
        ("ops_token = 12345678901234567", &[], "at line 1: ops_token: expected a text in quotation marks"),
        ("card_rate_limit = 1.6", &[], "card_rate_limit: expected a whole number"),
        ("log_format = 'xml'", &[], "log_format: expected one of text, json"),
        ("checkpoints_every = 10081", &[], "checkpoints_every: expected a whole number: 10081 is not in 1..=10080"),
        ("data = 5", &[], "data: expected a text in quotation marks"),
    ];
    for (toml, flags, reason) in cases {
        let error = with_file(toml, flags).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let missing = ["centavo", "serve", "--config", "no/such/file.toml"].map(str::to_owned);
    let Err(ArgumentsError::File(error)) = parse(program(), &missing) else { panic!("there is no file") };
    assert!(error.to_string().contains("no/such/file.toml can't be read"), "{error}");
}

#[test]
fn addresses_have_many_spellings() {
    for (text, meant) in [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("[::1]:1", "[::1]:1"),
        ("localhost:8080", "127.0.0.1:8080"),
        (":8080", "0.0.0.0:8080"),
    ] {
        assert_eq!(serve(&["--listen", text]).listen.to_string(), meant);
        assert_eq!(with_file(&format!("listen = '{text}'"), &[]).unwrap().listen.to_string(), meant);
    }
    for wrong in ["8080", "localhost", "localhost:", ":http", "127.0.0.1:70000", "::1:8080:x"] {
        assert!(Args::try_parse_from(["centavo", "serve", "--listen", wrong]).is_err(), "{wrong}");
    }
    for wrong in ["127.0.0.1:99999", ":65536", "[::1]:70000"] {
        let refused = Args::try_parse_from(["centavo", "serve", "--listen", wrong]).unwrap_err().to_string();
        assert!(refused.contains("is not 0 to 65535") && refused.contains("--listen"), "{refused}");
    }
}

#[test]
fn a_filter_of_the_log_is_levels() {
    for filter in ["info", "WARN", "off", "info,centavo=debug", "info, ractor=warn", "actors::journal=trace"] {
        assert!(log_filter(filter).is_ok(), "{filter}");
    }
    for wrong in ["", "loud", "info,centavo", "centavo=loud", "info,,debug", "info;debug"] {
        assert!(log_filter(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn help_names_every_variable_and_nothing_that_is_not_there() {
    let help = |command: &str| {
        let mut program = program();
        program.find_subcommand_mut(command).unwrap().render_long_help().to_string()
    };
    let serve = help("serve");
    // The file's names, as it lists them itself.
    let error = with_file("nothing = 1", &[]).unwrap_err();
    let names: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
    assert!(names.len() >= 13, "{error}");
    for name in names.into_iter().filter(|name| !TABLES.contains(name)) {
        let variable = format!("CENTAVO_{}", name.to_uppercase());
        assert!(serve.contains(&variable), "{variable} in {serve}");
    }
    for wrong in ["true, false", "possible values: true"] {
        assert!(!serve.contains(wrong), "{wrong} in {serve}");
    }
    assert!(serve.contains("+tax-ids"), "{serve}");
    let demo = help("demo");
    assert!(demo.contains("CENTAVO_DATA") && demo.contains("CENTAVO_MASTER_KEY"), "{demo}");
    for table in ["[rails]", "[rail.NAME]"] {
        assert!(serve.contains(table) && !demo.contains(table), "{table}");
    }
    for ignored in ["CENTAVO_SANDBOX", "CENTAVO_RATE_LIMIT", "CENTAVO_RAILS"] {
        assert!(!demo.contains(ignored), "a demonstration does not ask for {ignored}");
    }
}

#[test]
fn short_help_fits_a_terminal() {
    for command in program().get_subcommands_mut() {
        let help = command.render_help().to_string();
        assert!(help.lines().count() <= 40, "{}: {help}", command.get_name());
        let has_more = command.render_long_help().to_string().lines().count() > 40;
        assert!(!has_more || help.contains("--help"), "{}: {help}", command.get_name());
    }
}

#[test]
fn tokens_are_not_debugged() {
    let args = serve(&["--ops-token", "ana:tesouro-da-ana-e-do-rui-com-32-letras", "--ops-roles", "ana=admin"]);
    assert!(!format!("{args:?}").contains("tesouro"));
    assert!(!format!("{:?}", args.settings().unwrap()).contains("tesouro"));
    let args = serve(&["--store", "postgres://ana:tesouro@db/books"]);
    assert!(!format!("{args:?}").contains("tesouro"));
    let settings = args.settings().unwrap();
    assert!(!format!("{settings:?}").contains("tesouro"));
    assert_eq!(settings.store.place(), "postgres://db:5432/books");
}

#[test]
fn a_demonstration_is_always_a_sandbox() {
    let cases: [(&[&str], u32); 3] =
        [(&[], 3_000), (&["--charges", "10"], 10), (&["--sandbox=off", "--rate-limit", "on"], 3_000)];
    for (flags, charges) in cases {
        let args = Args::try_parse_from(["centavo", "demo"].iter().chain(flags)).unwrap();
        let Command::Demo(args) = args.command else { panic!("{args:?}") };
        assert_eq!(args.charges, charges);
        let settings = args.settings().unwrap();
        assert_eq!((settings.sandbox, settings.rate_limits), (true, None), "{flags:?}");
        let local: std::net::IpAddr = [127, 0, 0, 1].into();
        assert!(settings.webhook_allow.iter().any(|network| network.contains(&local)), "{flags:?}");
    }
}

#[test]
fn a_backup_asks_the_server_as_it_is_set_up() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"data = '/srv/books'\nops_listen = '0.0.0.0:9001'\nops_token = 'ana:token-of-ana,rui:two'")
        .unwrap();
    let config = file.path().to_string_lossy().into_owned();
    let typed = ["centavo", "backup", "--out", "/srv/backup", "--config", &config].map(str::to_owned);
    let Ok(Arguments { args, .. }) = parse(program(), &typed) else { panic!("the settings are right") };
    let Command::Backup(args) = args.command else { panic!("{args:?}") };
    let (journal, out) = (args.journal.settings().unwrap(), args.out);
    assert_eq!((journal.data.as_path(), out.as_path()), (Path::new("/srv/books"), Path::new("/srv/backup")));
    assert_eq!(journal.ops_listen.to_string(), "0.0.0.0:9001");
    assert_eq!(journal.ops_token, SecretSource::Text("ana:token-of-ana,rui:two".to_owned().into()));
    assert!(!format!("{journal:?}").contains("token-of-ana"));
    assert!(Args::try_parse_from(["centavo", "backup", "--data", "/srv/books"]).is_err(), "it must say where to");
}

fn export(flags: &[&str]) -> Result<Result<ExportSettings, ConfigError>, clap::Error> {
    let args = Args::try_parse_from(["centavo", "export", "--out", "books"].iter().chain(flags))?;
    let Command::Export(args) = args.command else { panic!("{args:?}") };
    Ok(args.settings())
}

#[test]
fn an_export_names_a_ledger_a_format_and_days() {
    let settings = export(&["--format", "csv"]).unwrap().unwrap();
    let whole = Request { ledger: None, format: Format::Csv, from: None, to: None };
    assert_eq!((settings.request, settings.at, settings.out.as_path()), (whole, None, Path::new("books")));
    let flags = ["--format", "beancount", "--ledger", "M-1", "--from", "2026-07-01", "--to", "2026-07-31", "--at", "7"];
    let settings = export(&flags).unwrap().unwrap();
    assert_eq!(settings.request.file_name(), "M-1_2026-07-01_2026-07-31.beancount");
    assert_eq!(settings.at, Some(Cut::new(vec![Sequence(7)])));
}

#[test]
fn an_export_that_cannot_be_made_is_refused_before_anything_is_read() {
    for (flags, expected) in [
        (&["--format", "journal-entries"][..], "journal-entries wants --map"),
        (&["--format", "journal-entries", "--map", "/nowhere.toml"], "journal-entries wants one --ledger"),
        (&["--format", "journal-entries", "--ledger", "P-all", "--map", "/nowhere.toml"], "/nowhere.toml: "),
        (&["--format", "csv", "--map", "/nowhere.toml"], "csv takes neither"),
        (&["--format", "csv", "--level", "day"], "csv takes neither"),
    ] {
        let error = export(flags).unwrap().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for format in ["hledger", "parquet", "xlsx"] {
        let error = export(&["--format", format, "--compress"]).unwrap().unwrap_err().to_string();
        assert!(error.contains(format) && error.contains("is not compressed"), "{error}");
    }
    let days = ["--format", "csv", "--from", "2026-07-02", "--to", "2026-07-01"];
    let error = export(&days).unwrap().unwrap_err().to_string();
    assert!(error.contains("no day from 2026-07-02 to 2026-07-01"), "{error}");
    for flags in
        [&["--format", "pdf"][..], &["--format", "csv", "--from", "2026-7-1"], &["--format", "csv", "--at", "0"]]
    {
        assert!(export(flags).is_err(), "{flags:?}");
    }
    assert!(Args::try_parse_from(["centavo", "export", "--format", "csv"]).is_err(), "it must say where to");
}

#[test]
fn verify_takes_a_directory() {
    let args = Args::try_parse_from(["centavo", "verify", "--data", "/srv/books"]).unwrap();
    assert!(matches!(args.command, Command::Verify(VerifyArgs { data, .. }) if data == Path::new("/srv/books")));
}
