//! HTTP answers of the gateway: bodies, event streams, refusals, and the model list.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::protocol::WireProtocol;
use super::{ListedModel, Refusal, RefusalKind};

pub(super) fn refuse(protocol: WireProtocol, refusal: &Refusal) -> Response {
    json_response(refusal.why.status(), &protocol.error(refusal))
}

pub(super) fn closed() -> Refusal {
    Refusal { why: RefusalKind::Closed, message: "the attempt is over".into() }
}

pub(super) fn json_response(status: u16, body: &Value) -> Response {
    respond(status, "application/json", Body::from(body.to_string()))
}

pub(super) fn event_stream(body: Body) -> Response {
    respond(200, "text/event-stream; charset=utf-8", body)
}

fn respond(status: u16, kind: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    if status != 200 && status < 500 {
        // This header stops the clients of OpenAI and Anthropic from retrying.
        headers.insert("x-should-retry", header::HeaderValue::from_static("false"));
    }
    response
}

/// Returns a model's entry for a model list, with the fields of both OpenAI's and Anthropic's protocols.
pub(super) fn listed(ListedModel { name, context }: &ListedModel) -> Value {
    let mut entry = json!({
        "id": name, "object": "model", "created": 0, "owned_by": "gateway",
        "type": "model", "display_name": name, "created_at": "1970-01-01T00:00:00Z",
    });
    if let Some(context) = context {
        // vLLM, OpenRouter and Anthropic name the context length differently.
        for field in ["max_model_len", "context_length", "max_input_tokens"] {
            entry[field] = json!(context);
        }
    }
    entry
}
