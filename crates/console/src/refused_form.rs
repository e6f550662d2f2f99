//! Form that was refused, shown again: the page that it stands on, with what was sent in its
//! fields, those that are wrong marked, and the problem at its head, by the labels of the fields.
//!
//! The answer of a handler that refuses carries what was sent ([`RefusedForm`]), and
//! [`show_again`], a layer over the routes, asks for the page of the form with it. Hidden fields
//! and passwords keep what the page gives them, so no token or key is repeated, and a form has a
//! new idempotency key and the version of what its page shows. Where no page has the form, the
//! answer is the page of the problem.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, PreEscaped, Render, html};
use tower::ServiceExt;

use crate::form::inside;
use crate::show;
use web::{Code, FieldError, Language, Problem, query};

/// The field of the page on which a form stands.
pub(crate) const PAGE: &str = "page";

/// What a form sent, and where to.
#[derive(Clone, Debug)]
pub(crate) struct SentForm {
    method: Method,
    action: String,
    pairs: Arc<[(String, String)]>,
}

impl SentForm {
    /// The form of a query; `None` if there is no query.
    pub(crate) fn of_query(parts: &Parts) -> Option<Self> {
        let pairs = query(parts).ok().filter(|pairs| parts.method == Method::GET && !pairs.is_empty())?;
        Some(Self::new(Method::GET, parts.uri.path(), pairs))
    }

    /// The fields that were sent to a path.
    pub(crate) fn new(method: Method, action: &str, pairs: Vec<(String, String)>) -> Self {
        Self { method, action: action.to_owned(), pairs: pairs.into() }
    }

    /// Addresses of the pages that may have the form, the likeliest first.
    fn pages(&self) -> Vec<&str> {
        let named = self.pairs.iter().find(|(name, _)| name == PAGE).map(|(_, page)| inside(page));
        let parent = self.action.rsplit_once('/').map(|(parent, _)| parent).filter(|parent| !parent.is_empty());
        let named = named.filter(|_| self.method == Method::POST);
        named.into_iter().chain([self.action.as_str()]).chain(parent).collect()
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.pairs.iter().any(|(key, sent)| key == name && sent == value)
    }

    /// Whether a form of a page sends to where this one was sent.
    fn is_sent_by(&self, form: &str, page: &str) -> bool {
        let head = form.split('>').next().unwrap_or_default();
        let is_post = attribute(head, "method") == Some("post");
        attribute(head, "action").unwrap_or(page) == self.action && is_post == (self.method == Method::POST)
    }

    /// How much of a form was sent: fields by name, hidden ones by value too.
    fn likeness(&self, form: &str) -> usize {
        let tags = form.split('<').map(|part| part.split('>').next().unwrap_or_default());
        let fields = tags.filter_map(|tag| attribute(tag, "name").map(|name| (tag, name)));
        let is_sent = |(tag, name): &(&str, &str)| match attribute(tag, "type") {
            Some("hidden") => self.has(name, &unescaped(attribute(tag, "value").unwrap_or_default())),
            _ => self.value(name).is_some(),
        };
        fields.filter(is_sent).count()
    }
}

/// A form that was refused: extension of the answer, and of the request for the form's page.
#[derive(Clone, Debug)]
pub(crate) struct RefusedForm {
    /// What was sent.
    sent: SentForm,
    /// The status of the answer.
    pub status: StatusCode,
    /// The problem in words.
    alert: String,
    /// The fields that are wrong, by their names in the interface.
    wrong: Vec<FieldError>,
    language: Language,
}

/// Extension of a page that shows a refused form again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownAgain;

impl RefusedForm {
    /// What is shown again after a problem; `None` if a form cannot mend it, or where the request
    /// may be under way or belongs to another process.
    pub(crate) fn after(language: Language, problem: &Problem, sent: &SentForm, alert: &Markup) -> Option<Self> {
        let status = problem.status();
        let is_of_sender = status.is_client_error()
            && ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status)
            && problem.code() != Code::IdempotencyKeyInProgress
            && problem.needed_partition().is_none();
        is_of_sender.then(|| Self {
            sent: sent.clone(),
            status,
            alert: alert.0.clone(),
            wrong: problem.wrong_fields().to_vec(),
            language,
        })
    }

    /// What was sent in a field.
    pub(crate) fn sent(&self, field: &str) -> Option<&str> {
        self.sent.value(field)
    }

    /// The body of a page with the form filled, and the problem at its head; `None` if it has no
    /// such form. `page` is the path of the page.
    pub(crate) fn on(&self, html: &str, page: &str) -> Option<Markup> {
        let starts = html.match_indices("<form").map(|(start, _)| start);
        let forms = starts.map(|start| (start, html[start..].split("</form>").next().unwrap_or_default()));
        let own = forms.filter(|(_, form)| self.sent.is_sent_by(form, page));
        // Of forms that are alike, the first one.
        let (start, form) = own.min_by_key(|(_, form)| std::cmp::Reverse(self.sent.likeness(form)))?;
        let end = start + form.len();
        let (mut alert, mut marked) = (self.alert.clone(), Vec::new());
        for wrong in &self.wrong {
            let found = labelled(form, &wrong.field);
            let labels = found.as_ref().map(|(name, label)| (*name, label.as_str()));
            let by_name = show::wrong_field(self.language, wrong, None).0;
            let in_words = show::wrong_field(self.language, &relabelled(form, wrong), labels).0;
            alert = alert.replacen(&by_name, &in_words, 1);
            marked.extend(labels.map(|(name, _)| name));
        }
        let filled = filled(form, &self.sent, &marked);
        Some(html! {
            (PreEscaped(alert)) (PreEscaped(&html[..start])) (PreEscaped(filled)) (PreEscaped(&html[end..]))
        })
    }
}

/// Shows a form that is refused again. `pages` are the routes of the pages.
pub(crate) async fn show_again(State(pages): State<Router>, request: Request, next: Next) -> Response {
    let headers = request.headers().clone();
    let mut answer = next.run(request).await;
    let Some(form) = answer.extensions_mut().remove::<RefusedForm>() else { return answer };
    for page in form.sent.pages() {
        let Ok(asked) = page_request(page, &headers, &form) else { continue };
        let Ok(shown) = pages.clone().oneshot(asked).await;
        if shown.extensions().get::<ShownAgain>().is_some() {
            return shown;
        }
    }
    answer
}

/// The request for a page, of the same session.
fn page_request(page: &str, headers: &HeaderMap, form: &RefusedForm) -> Result<Request, axum::http::Error> {
    let mut asked = Request::get(page).body(Body::empty())?;
    *asked.headers_mut() = headers.clone();
    asked.headers_mut().remove(CONTENT_TYPE);
    asked.headers_mut().remove(CONTENT_LENGTH);
    asked.extensions_mut().insert(form.clone());
    Ok(asked)
}

/// The name and the label that a form has for a field of the interface, such as `mdr_1x` for
/// `fees.mdr_1x`; `None` if it has none.
fn labelled<'a>(form: &'a str, field: &str) -> Option<(&'a str, String)> {
    let own = field.rsplit('.').next().unwrap_or(field).trim_end_matches("_cents");
    let tags = || form.split('<').map(|part| part.split('>').next().unwrap_or_default());
    let named = |is_it: &dyn Fn(&str) -> bool| {
        tags().find_map(|tag| Some((tag, attribute(tag, "name").filter(|name| is_it(name))?)))
    };
    // Limits of requests are `rate_limits.card`, and `limit_card` in the form.
    let is_end = |name: &str| name.strip_suffix(own).is_some_and(|rest| rest.ends_with('_'));
    let found = named(&|name| name == field).or_else(|| named(&|name| name == own)).or_else(|| named(&is_end));
    let (tag, name) = found.filter(|(tag, _)| attribute(tag, "type") != Some("hidden"))?;
    let label = form.split_once(&format!("<label for=\"{}\">", attribute(tag, "id")?))?.1.split("</label>").next()?;
    Some((name, unescaped(label)))
}

/// What is wrong with a field, with the labels of a form in place of the names of its other fields.
fn relabelled(form: &str, wrong: &FieldError) -> FieldError {
    let label = |word: &str| labelled(form, word).filter(|(name, _)| *name == word && word != wrong.field);
    let words = wrong.message.split(' ').map(|word| match label(word) {
        Some((_, label)) => format!("«{label}»"),
        None => word.to_owned(),
    });
    FieldError { message: words.collect::<Vec<_>>().join(" ").into(), ..wrong.clone() }
}

/// A form of a page with what was sent in its fields. Those that are `wrong` are marked.
fn filled(form: &str, sent: &SentForm, wrong: &[&str]) -> String {
    let mut filled = String::with_capacity(form.len() + 256);
    let (mut chosen, mut rest) = (None, form);
    while let Some(begin) = rest.find('<') {
        let end = rest[begin..].find('>').map_or(rest.len(), |end| begin + end + 1);
        let (tag, behind) = (&rest[begin..end], &rest[end..]);
        filled.push_str(&rest[..begin]);
        rest = behind;
        let element = tag[1..].split([' ', '>']).next().unwrap_or_default();
        let name = attribute(tag, "name");
        let value = name.and_then(|name| sent.value(name));
        let name = name.filter(|name| wrong.contains(name) && ["input", "select", "textarea"].contains(&element));
        let with_mark = name.map(|name| {
            // A field that has a hint has both texts: browsers read the first attribute alone.
            let before = attribute(tag, "aria-describedby").map(|before| format!(" {before}")).unwrap_or_default();
            let plain = tag.replacen(&format!(" aria-describedby=\"{}\"", before.trim_start()), "", 1);
            format!("{} aria-invalid=\"true\" aria-describedby=\"wrong-{name}{before}\">", plain.trim_end_matches('>'))
        });
        let tag = with_mark.as_deref().unwrap_or(tag);
        match (element, value) {
            ("input", value) => filled.push_str(&input(tag, value, sent)),
            ("select", value) => {
                chosen = value.map(str::to_owned);
                filled.push_str(tag);
            }
            ("option", _) => {
                let text = behind.split('<').next().unwrap_or_default();
                let value = unescaped(attribute(tag, "value").unwrap_or(text));
                filled.push_str(&match &chosen {
                    Some(chosen) => marked(tag, "selected", *chosen == value),
                    None => tag.to_owned(),
                });
            }
            ("textarea", Some(value)) => {
                // The first line break of a text area is none of its text.
                let gap = if value.starts_with(['\r', '\n']) { "\n" } else { "" };
                filled.push_str(&format!("{tag}{gap}{}", escaped(value)));
                rest = behind.find('<').map_or("", |end| &behind[end..]);
            }
            _ => filled.push_str(tag),
        }
    }
    filled + rest
}

/// The tag of a field with what was sent.
fn input(tag: &str, value: Option<&str>, sent: &SentForm) -> String {
    match (attribute(tag, "type"), value) {
        (Some("hidden" | "password" | "submit"), _) => tag.to_owned(),
        (Some("checkbox" | "radio"), _) => {
            let (name, own) = (attribute(tag, "name"), unescaped(attribute(tag, "value").unwrap_or("on")));
            name.map_or_else(|| tag.to_owned(), |name| marked(tag, "checked", sent.has(name, &own)))
        }
        (_, Some(value)) => {
            let value = escaped(value);
            let before = attribute(tag, "value").map(|before| format!(" value=\"{before}\""));
            let without = before.map_or_else(|| tag.to_owned(), |before| tag.replacen(&before, "", 1));
            format!("{} value=\"{value}\">", without.trim_end_matches('>'))
        }
        (_, None) => tag.to_owned(),
    }
}

/// A tag with an attribute that has no value, or without it.
fn marked(tag: &str, attribute: &str, is_set: bool) -> String {
    let plain = tag.replacen(&format!(" {attribute}"), "", 1);
    if is_set { format!("{} {attribute}>", plain.trim_end_matches('>')) } else { plain }
}

/// The value of an attribute of a tag, escaped as it stands there.
fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn escaped(text: &str) -> String {
    text.render().0
}

fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(method: Method, action: &str, pairs: &[(&str, &str)]) -> RefusedForm {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let sent = SentForm::new(method, action, pairs);
        let (alert, status) = ("<p>wrong</p>".to_owned(), StatusCode::BAD_REQUEST);
        RefusedForm { sent, status, alert, wrong: Vec::new(), language: Language::Portuguese }
    }

    fn shown(form: &RefusedForm, body: Markup) -> Option<String> {
        form.on(&body.0, "/console/x").map(|body| body.0)
    }

    fn forms() -> Markup {
        html! {
            form method="post" action="/console/x" {
                input type="hidden" name="form_token" value="t"; input type="hidden" name="kind" value="a";
                input name="amount" maxlength="20" value="1"; input type="password" name="token";
            }
            form method="post" action="/console/x" {
                input type="hidden" name="kind" value="b"; input name="amount";
                label { input type="checkbox" name="sure" value="on"; } input type="checkbox" name="other" value="on" checked;
                select name="account" { option { "A & B" } option value="c" selected { "C" } }
                textarea name="reason" required {}
            }
            form { input name="amount"; }
        }
    }

    #[test]
    fn the_form_that_was_sent_has_its_values_and_no_other_form() {
        let fields = [
            ("kind", "b"),
            ("amount", "\"><script>1</script>"),
            ("sure", "on"),
            ("account", "A & B"),
            ("reason", "\nfirst\n& last"),
        ];
        let page = shown(&sent(Method::POST, "/console/x", &fields), forms()).unwrap();
        let (first, second) = page.split_once("value=\"b\"").unwrap();
        assert!(first.starts_with("<p>wrong</p><form") && first.contains("maxlength=\"20\" value=\"1\">"), "{page}");
        for text in [
            "name=\"amount\" value=\"&quot;&gt;&lt;script&gt;1&lt;/script&gt;\">",
            "name=\"sure\" value=\"on\" checked>",
            "name=\"other\" value=\"on\">",
            "<option selected>A &amp; B",
            "<option value=\"c\">C",
            "name=\"reason\" required>\n\nfirst\n&amp; last</textarea></form><form><input name=\"amount\"></form>",
        ] {
            assert!(second.contains(text), "{text} in {second}");
        }
    }

    #[test]
    fn a_wrong_field_is_marked_and_has_its_label_in_the_problem() {
        let page = html! {
            form method="post" action="/console/x" {
                label for="rate" { "MDR à vista (%)" } input id="rate" name="mdr_1x" maxlength="8" value="3.99";
                label for="why" { "Motivo" } textarea id="why" name="reason" {}
                label for="from" { "De" } input id="from" name="from"; label for="to" { "Até" } input id="to" name="to" aria-describedby="to-hint";
                input type="hidden" name="key" value="k";
            }
        };
        let error = |field: &str, message: &str| FieldError {
            field: field.to_owned(),
            code: "not_a_percent",
            message: message.to_owned().into(),
        };
        let wrong = vec![
            error("fees.mdr_1x", "fees.mdr_1x deve ser um percentual"),
            error("reason", "reason: falta"),
            error("to", "to não pode ser anterior a from"),
            error("key", "inválida"),
            error("elsewhere", "elsewhere é de outro dia: use to"),
        ];
        let fields = [("mdr_1x", "x"), ("reason", "a")];
        let mut form = sent(Method::POST, "/console/x", &fields);
        form.alert = wrong.iter().map(|wrong| show::wrong_field(Language::Portuguese, wrong, None).0).collect();
        form.wrong = wrong;
        let page = shown(&form, page).unwrap();
        for text in [
            "<p id=\"wrong-mdr_1x\"><strong>MDR à vista (%)</strong>: deve ser um percentual</p>",
            "<p id=\"wrong-reason\"><strong>Motivo</strong>: falta</p>",
            "<strong>Até</strong>: não pode ser anterior a «De»</p><p><code>key</code>: inválida</p>",
            "<p><code>elsewhere</code>: elsewhere é de outro dia: use «Até»</p>",
            "name=\"to\" aria-invalid=\"true\" aria-describedby=\"wrong-to to-hint\">",
            "maxlength=\"8\" aria-invalid=\"true\" aria-describedby=\"wrong-mdr_1x\" value=\"x\">",
            "name=\"reason\" aria-invalid=\"true\" aria-describedby=\"wrong-reason\">a</textarea>",
        ] {
            assert!(page.contains(text), "{text} in {page}");
        }
        assert_eq!(page.matches("aria-invalid").count(), 3, "{page}");
    }

    #[test]
    fn hidden_fields_and_passwords_are_not_repeated() {
        let fields = [("form_token", "forged"), ("kind", "a"), ("token", "secret"), ("amount", "2")];
        let page = shown(&sent(Method::POST, "/console/x", &fields), forms()).unwrap();
        assert!(page.contains("maxlength=\"20\" value=\"2\">") && page.contains("value=\"t\""), "{page}");
        assert!(!page.contains("forged") && !page.contains("secret"), "{page}");
    }

    #[test]
    fn a_form_is_known_by_its_method_and_its_action() {
        let query = sent(Method::GET, "/console/x", &[("amount", "7")]);
        assert!(shown(&query, forms()).unwrap().ends_with("<form><input name=\"amount\" value=\"7\"></form>"));
        for (method, action) in [(Method::GET, "/console/y"), (Method::POST, "/console")] {
            assert_eq!(shown(&sent(method, action, &[("amount", "7")]), forms()), None, "{action}");
        }
    }
}
