//! Keeps the charts of a CompositeApp on the hub, and takes them from there when this process has none.

use emco_crds::composite_app::{App, ChartPin};
use emco_crds::{CompositeApp, Project};

use super::{pin_of, pinned_chart};
use crate::api::ApiResult;
use crate::chart::on_hub::{self, Kept};
use crate::chart::{FetchRequest, Source, Turn};
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::store;

fn hub(ctx: &Context) -> on_hub::Hub<'_> {
    on_hub::Hub { server: ctx.hub(), namespace: &ctx.namespace }
}

/// Keeps an archive on the hub. Where that may not be, a sentence says so, and the chart is used all the same.
pub async fn keep(
    ctx: &Context,
    object: &CompositeApp,
    pin: &ChartPin,
    archive: &[u8],
) -> ApiResult<Option<String>> {
    let who = (meta::namespace(object), meta::name(object));
    let kept = ctx.charts.on_hub.keep(hub(ctx), who, pin, archive).await?;
    if kept == Kept::Full {
        // What only the history needs makes room.
        store::request_collection(ctx);
    }
    Ok(kept.sentence().map(|sentence| format!("app {}: its chart {sentence}", pin.name)))
}

/// Takes up, for apps without a pin, those of stored revisions whose archives are kept: an edit that is taken back needs no source.
pub async fn remember(
    ctx: &Context,
    (object, project): (&CompositeApp, &Project),
    pins: &mut Vec<ChartPin>,
    turn: &Turn,
) -> ApiResult<()> {
    // What a ConfigMap has is on the hub anyway, and an edit of the ConfigMap is accepted by an edit of the app.
    for app in object.spec.apps.iter().filter(|app| app.chart.config_map_ref.is_none()) {
        if pin_of(pins, app).is_some() {
            continue;
        }
        if let Some(pin) = of_revision(ctx, object, app)
            && pinned_chart(ctx, (object, project), (app, &pin), turn).await?.is_some()
        {
            pins.push(pin);
        }
    }
    Ok(())
}

/// What the latest stored revision that was made of this source has of it.
fn of_revision(ctx: &Context, object: &CompositeApp, app: &App) -> Option<ChartPin> {
    let contexts = ctx.stores.contexts.within(meta::namespace(object));
    let of =
        contexts.iter().filter(|context| context.spec.composite_app.as_deref() == Some(meta::name(object)));
    let found = of.filter_map(|context| Some((context, pin_of(&context.spec.charts, app)?)));
    let latest =
        found.max_by_key(|(context, _)| (&context.metadata.creation_timestamp, context.spec.revision));
    latest.map(|(_, pin)| pin.clone())
}

/// Brings a pinned archive from the hub to the disk. Answers whether the hub has it.
pub async fn restore(
    ctx: &Context,
    object: &CompositeApp,
    pin: &ChartPin,
    request: &FetchRequest<'_>,
) -> ApiResult<bool> {
    if matches!(request.source, Source::ConfigMap { .. }) || request.pinned != Some(pin.digest.as_str()) {
        return Ok(false);
    }
    let Some(bytes) = ctx.charts.on_hub.read(hub(ctx), meta::namespace(object), pin).await? else {
        return Ok(false);
    };
    ctx.charts.restore(request.clone(), &bytes).await;
    Ok(true)
}
