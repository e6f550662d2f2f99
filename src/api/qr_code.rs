//! QR code of a pending PIX charge, as an SVG image. It holds the text of `pixCopiaECola`.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use ledger::charge::ChargeOutcome;
use qrcode::render::svg;
use qrcode::{EcLevel, QrCode};

use crate::api::AppState;
use crate::api::charges::named;
use web::views::charge::{ChargeView, not_pending};
use web::{Caller, Code, PathId, Problem, Result, failed};

/// Least width of the image, in pixels; it scales without loss.
const WIDTH_MIN: u32 = 240;

/// The image to scan: the QR code of a pending PIX charge, as SVG. An address of an image sends no
/// API key, so a shop's server asks for it and hands it on.
#[utoipa::path(get, path = "/api/charges/{txid}/qr.svg", operation_id = "get_charge_qr_code",
    responses((status = 200, content((String = "image/svg+xml"))), (status = 409)))]
pub async fn get(State(app): AppState, caller: Caller, PathId(txid): PathId) -> Result<Response> {
    let charge = named(&app, caller, &txid)?;
    if charge.outcome != ChargeOutcome::Pending {
        return Err(not_pending(&charge));
    }
    let without = "The charge has no PIX code: it is of a card, or its institution has not registered it yet.";
    let code = ChargeView::of(&app.engine, &charge)?.pix_copia_e_cola;
    let code = code.ok_or_else(|| Problem::new(Code::StateConflict).detail(without))?;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'")),
    ];
    Ok((headers, image(&code).map_err(failed)?).into_response())
}

/// The image of a text. Level M, which a phone still reads with 15 % of it covered, and the quiet
/// zone of four modules that the standard demands.
///
/// Fails when the text is longer than a QR code can be, which no PIX code is.
fn image(text: &str) -> Result<String, qrcode::types::QrError> {
    let code = QrCode::with_error_correction_level(text, EcLevel::M)?;
    Ok(code.render::<svg::Color<'_>>().quiet_zone(true).min_dimensions(WIDTH_MIN, WIDTH_MIN).build())
}
