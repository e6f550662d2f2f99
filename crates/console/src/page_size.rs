//! Size of a page: one that would be too long has the texts cut that people wrote. Lists stay
//! short by their own bounds.

/// Bytes of the body of a page above which its long texts are cut: 100 KiB without the frame.
const BODY_MAX: usize = 88 * 1024;
/// Characters of a text that are left where it is cut.
const TEXT_MAX: usize = 40;

/// The body of a page, and whether its texts were cut: what people wrote stands in `bdi` elements,
/// and only a page that would be too long has it cut.
pub(crate) fn fitting(body: &str) -> (String, bool) {
    if body.len() <= BODY_MAX {
        return (body.to_owned(), false);
    }
    const BEGIN: &str = "<bdi>";
    let mut fitting = String::with_capacity(BODY_MAX);
    for (place, part) in body.split(BEGIN).enumerate() {
        match part.split_once("</bdi>").filter(|(text, _)| place > 0 && !text.contains('<')) {
            Some((text, behind)) => {
                fitting.push_str(BEGIN);
                cut(text, &mut fitting);
                fitting.push_str("</bdi>");
                fitting.push_str(behind);
            }
            None => {
                fitting.push_str(if place > 0 { BEGIN } else { "" });
                fitting.push_str(part);
            }
        }
    }
    (fitting, true)
}

/// Appends the first characters of an escaped text. An entity is one character.
fn cut(text: &str, to: &mut String) {
    let (mut characters, mut is_entity) = (0, false);
    for letter in text.chars() {
        if !is_entity {
            if characters == TEXT_MAX {
                to.push('…');
                return;
            }
            characters += 1;
        }
        is_entity = (is_entity || letter == '&') && letter != ';';
        to.push(letter);
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    #[test]
    fn long_texts_are_cut_only_where_the_page_is_too_long() {
        let text = html! { (("\"&".repeat(100))) }.into_string();
        let row = format!("<p title=\"x\"><bdi>{text}</bdi></p><bdi>kept</bdi><bdi><b>{text}</b></bdi>");
        assert_eq!(fitting(&row), (row.clone(), false));
        let (cut, is_cut) = fitting(&row.repeat(1 + BODY_MAX / row.len()));
        let first = format!("<bdi>{}…</bdi></p><bdi>kept</bdi><bdi><b>{text}</b></bdi>", "&quot;&amp;".repeat(20));
        assert!(is_cut && cut.starts_with(&format!("<p title=\"x\">{first}")), "{cut}");
    }
}
