//! Reads whole lists page by page.

use serde_json::Value;

use super::{ApiError, ApiResult, ApiServer, Request};

/// Objects in one answer, unless the request has a limit of its own: large objects have to fit into one.
const PAGE: &str = "500";

/// Gives every object of a list to `each`. An answer without items is an error and no empty list.
pub async fn pages(
    server: &(impl ApiServer + ?Sized),
    request: Request,
    mut each: impl FnMut(Value),
) -> ApiResult<()> {
    let limited = request.query.iter().any(|(name, _)| *name == "limit");
    let request = if limited { request } else { request.query("limit", PAGE) };
    let mut next = None::<String>;
    loop {
        let mut page = request.clone();
        if let Some(token) = next.take() {
            page = page.query("continue", token);
        }
        let mut answer = server.send(page).await?;
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items.into_iter().for_each(&mut each),
            // How an API server may write an empty list.
            Some(Value::Null) => {}
            _ => return Err(ApiError::Protocol(format!("{}: the answer is no list", request.path))),
        }
        match answer.pointer("/metadata/continue").and_then(Value::as_str) {
            Some(token) if !token.is_empty() => next = Some(token.to_owned()),
            _ => return Ok(()),
        }
    }
}
