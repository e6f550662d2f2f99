//! The Central Bank's lists of institutions, as an operator loads them: participants of STR, which
//! have codes of three digits, and participants of PIX. Each is a CSV file that the Central Bank
//! publishes; a line before the names of the columns is passed over.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::client::SettingsError;

/// Institutions of the Central Bank's lists, by ISPB and by code.
#[derive(Debug, Default)]
pub(crate) struct ParticipantLists {
    ispbs: BTreeSet<String>,
    ispb_by_code: BTreeMap<String, String>,
}

/// Bytes of a list.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

impl ParticipantLists {
    /// Reads the lists; none of them is no institution.
    pub(crate) fn read(setting: &'static str, files: &[PathBuf]) -> Result<Self, SettingsError> {
        let mut lists = Self::default();
        for file in files {
            let added = lists.add(file).map_err(|defect| SettingsError::file(setting, file, defect))?;
            if added == 0 {
                return Err(SettingsError::file(setting, file, "no column ISPB, or no institution below it"));
            }
        }
        Ok(lists)
    }

    /// The institution of a code.
    pub(crate) fn ispb_of(&self, code: &str) -> Option<&str> {
        self.ispb_by_code.get(code).map(String::as_str)
    }

    /// Whether a list has the institution; without a list, every one.
    pub(crate) fn has(&self, ispb: &str) -> bool {
        self.ispbs.is_empty() || self.ispbs.contains(ispb)
    }

    /// Adds a list; gives how many lines named an institution.
    fn add(&mut self, file: &Path) -> Result<usize, String> {
        let message = |error: std::io::Error| error.to_string();
        if std::fs::metadata(file).map_err(message)?.len() > FILE_BYTES_MAX {
            return Err("it is too large".to_owned());
        }
        let bytes = std::fs::read(file).map_err(message)?;
        // Names of institutions may be in another encoding; they are not read.
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_start_matches('\u{feff}');
        let head = text.lines().find(|line| line.contains("ISPB")).unwrap_or_default();
        let delimiter = if head.contains(';') { b';' } else { b',' };
        let mut reader = csv::ReaderBuilder::new();
        let mut reader = reader.has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
        let (mut columns, mut added) = (None, 0);
        for record in reader.records() {
            let record = record.map_err(|error| error.to_string())?;
            let Some((ispb, code)) = columns else {
                let place = |is_it: fn(&str) -> bool| record.iter().position(|name| is_it(name.trim()));
                columns = place(|name| name == "ISPB").map(|ispb| (ispb, place(is_code)));
                continue;
            };
            let Some(ispb) = record.get(ispb).and_then(ispb_of_list) else { continue };
            if let Some(code) = code.and_then(|place| record.get(place)).and_then(code_of_list) {
                self.ispb_by_code.insert(code, ispb.clone());
            }
            self.ispbs.insert(ispb);
            added += 1;
        }
        Ok(added)
    }
}

/// `Número_Código`, in whatever encoding its accents are.
fn is_code(name: &str) -> bool {
    name.starts_with('N') && name.ends_with("digo")
}

/// An ISPB of a list, of which a spreadsheet may have cut the zeros.
fn ispb_of_list(text: &str) -> Option<String> {
    let text = text.trim();
    let is_ispb = (1..=8).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit() || (text.len() == 8 && byte.is_ascii_uppercase()));
    is_ispb.then(|| format!("{text:0>8}"))
}

/// A code of a list; most institutions have none (`n/a`).
fn code_of_list(text: &str) -> Option<String> {
    let text = text.trim();
    let is_code = (1..=3).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    is_code.then(|| format!("{text:0>3}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(lists: &[&[u8]]) -> Result<ParticipantLists, String> {
        let folder = tempfile::tempdir().unwrap();
        let write = |(number, list): (usize, &&[u8])| {
            let path = folder.path().join(format!("{number}.csv"));
            std::fs::write(&path, list).unwrap();
            path
        };
        let files: Vec<_> = lists.iter().enumerate().map(write).collect();
        ParticipantLists::read("participants_files", &files).map_err(|error| error.to_string())
    }

    #[test]
    fn both_lists_are_read_by_the_names_of_their_columns() {
        let str_list = "\u{feff}ISPB,Nome_Reduzido,Número_Código,Participa_da_Compe\r\n\
            00000000,BCO DO BRASIL S.A.,001,Sim\r\n00038121,Selic,n/a,Não\r\n\
            208,\"BRB, BCO DE BRASILIA\",70,Sim\r\n";
        let pix_list = b"Lista de participantes em ades\xe3o\nN\xba;Nome Reduzido;ISPB;CNPJ\n\
            1;BCO DO BRASIL S.A.;00000000;00000000000191\n2;NU PAGAMENTOS - IP;18236120;18236120000158\n";
        let lists = read(&[str_list.as_bytes(), pix_list]).unwrap();
        let codes = ["001", "070", "260", "n/a"].map(|code| lists.ispb_of(code));
        assert_eq!(codes, [Some("00000000"), Some("00000208"), None, None]);
        let known = ["00000000", "00000208", "00038121", "18236120", "18236121", "CNPJ"].map(|ispb| lists.has(ispb));
        assert_eq!(known, [true, true, true, true, false, false]);
        assert!(read(&[]).unwrap().has("18236121"), "without a list every institution may be one");
    }

    #[test]
    fn a_file_that_is_no_list_is_refused_by_name() {
        for wrong in ["", "ISPB\n", "Nome;CNPJ\nBanco;1\n", "<html>ISPB</html>\n"] {
            let error = read(&[wrong.as_bytes()]).unwrap_err();
            assert!(error.contains("participants_files") && error.contains("0.csv"), "{error}");
        }
    }
}
