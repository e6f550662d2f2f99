//! Manual pages and shell completions, made from the same descriptions as `--help`.

use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::Shell;

/// Writes a manual page for the program and one for each command, as `centavo-serve.1`, into a
/// folder, which is made when there is none.
pub fn write_manual(program: Command, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    clap_mangen::generate_to(program, folder)
}

/// The script that completes the program's commands, flags and values in a shell.
pub fn completions(mut program: Command, shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "centavo", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::args;

    #[test]
    fn every_command_has_a_manual_page_that_names_its_flags() {
        let folder = tempfile::tempdir().unwrap();
        write_manual(args::program(), folder.path()).unwrap();
        for command in args::program().get_subcommands() {
            let page = folder.path().join(format!("centavo-{}.1", command.get_name()));
            let page = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            for flag in command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(clap::Arg::get_long) {
                assert!(page.replace('\\', "").contains(&format!("--{flag}")), "{}: --{flag}", command.get_name());
            }
        }
    }

    #[test]
    fn every_shell_completes_commands_and_flags() {
        for shell in clap::ValueEnum::value_variants() {
            let script = String::from_utf8(completions(args::program(), *shell)).unwrap();
            assert!(script.contains("verify") && script.contains("ops-listen"), "{shell}");
        }
    }
}
