//! A browser with one page, and somebody who looks, clicks and types.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::programs::Browser;
use emco_e2e::skip::skip;
use fantoccini::error::{CmdError, ErrorStatus};
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::sync::OnceCell;
use tokio::time::sleep;

/// For whatever is to be seen.
const SOON: Duration = Duration::from_mins(2);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);
const STARTED: &str = "was started successfully on port ";

static BROWSER: OnceCell<Result<Browser, String>> = OnceCell::const_new();
/// The address of the server that drives browsers, one for all tests.
static DRIVER: OnceCell<Result<String, String>> = OnceCell::const_new();

/// The browser of this machine; where there is none, the test `name` is skipped.
pub async fn browser(name: &str) -> Option<&'static Browser> {
    let find = || async {
        let found = tokio::task::spawn_blocking(Browser::get).await;
        found.map_err(|error| error.to_string()).and_then(|found| found.map_err(|error| format!("{error:#}")))
    };
    match BROWSER.get_or_init(find).await {
        Ok(browser) => Some(browser),
        Err(error) => {
            skip(name, &format!("needs Chromium, which cannot be had: {error}"));
            None
        }
    }
}

async fn driver(bed: &Bed, browser: &Browser) -> Result<String> {
    let start = || async {
        let started = async {
            let home = bed.dir().display().to_string();
            let (name, libraries) = browser.libraries();
            let env = [(name, libraries.as_str()), ("HOME", home.as_str()), ("TMPDIR", home.as_str())];
            let process = bed.run("chromedriver", &browser.driver(), &["--port=0"], &env).await?;
            let deadline = Instant::now() + SOON;
            loop {
                let log = tokio::fs::read_to_string(bed.log("chromedriver")).await.unwrap_or_default();
                let port = log.split_once(STARTED).and_then(|(_, rest)| rest.split('.').next());
                if let Some(port) = port.filter(|_| log.ends_with('\n')) {
                    return Ok::<_, anyhow::Error>(format!("http://127.0.0.1:{port}"));
                }
                ensure!(process.is_running() && Instant::now() < deadline, "chromedriver says: {log}");
                sleep(LOOK).await;
            }
        };
        started.await.map_err(|error| format!("{error:#}"))
    };
    DRIVER.get_or_init(start).await.clone().map_err(|error| anyhow!(error))
}

/// A command of Chromium's own.
#[derive(Debug)]
struct OfChromium(Value);

impl WebDriverCompatibleCommand for OfChromium {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &url::Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.0.to_string()))
    }
}

/// A page in a browser of its own.
pub struct Screen {
    client: Client,
}

impl Screen {
    /// Opens a window of 1440 by 900.
    pub async fn open(bed: &Bed, browser: &Browser) -> Result<Self> {
        let capabilities: Capabilities = serde_json::from_value(json!({
            "browserName": "chrome",
            "timeouts": {"script": 30_000, "pageLoad": 30_000},
            "goog:chromeOptions": {"binary": browser.chromium(), "args": [
                "--headless=new", "--disable-dev-shm-usage", "--disable-component-update", "--no-first-run",
                // As root it has no sandbox, and it reads nothing but this machine's own pages.
                "--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                // It ends with who holds the pipe.
                "--remote-debugging-pipe",
            ]},
        }))?;
        let address = driver(bed, browser).await?;
        let mut builder = ClientBuilder::new(HttpConnector::new());
        builder.capabilities(capabilities);
        let client = builder.connect(&address).await.context("no browser opens")?;
        let screen = Self { client };
        screen.resize(1440, 900).await?;
        Ok(screen)
    }

    /// Opens a window that shows a page.
    pub async fn at(bed: &Bed, browser: &Browser, link: &str) -> Result<Self> {
        let screen = Self::open(bed, browser).await?;
        screen.go(link).await?;
        Ok(screen)
    }

    /// Closes it, which a test that fails leaves to the end of all.
    pub async fn close(self) -> Result<()> {
        self.client.close().await.context("the browser does not close")
    }

    pub async fn go(&self, link: &str) -> Result<()> {
        self.client.goto(link).await.context("the page does not load")
    }

    pub async fn back(&self) -> Result<()> {
        self.client.back().await.context("there is no way back")
    }

    pub async fn address(&self) -> Result<String> {
        Ok(self.client.current_url().await?.to_string())
    }

    pub async fn picture(&self) -> Result<Vec<u8>> {
        self.client.screenshot().await.context("no picture")
    }

    /// The frame that is the first one of the page.
    pub async fn enter_frame(&self) -> Result<()> {
        self.client.enter_frame(0).await.context("there is no frame")
    }

    /// What a function of these lines returns in the page.
    pub async fn run(&self, script: &str, args: Vec<Value>) -> Result<Value> {
        self.client.execute(script, args).await.with_context(|| begin(script))
    }

    /// The same of lines that end with a call of their last argument.
    pub async fn run_async(&self, script: &str, args: Vec<Value>) -> Result<Value> {
        self.client.execute_async(script, args).await.with_context(|| begin(script))
    }

    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.chromium("Emulation.setDeviceMetricsOverride", size).await
    }

    /// What the person prefers: `light` or `dark`.
    pub async fn prefer(&self, scheme: &str) -> Result<()> {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.chromium("Emulation.setEmulatedMedia", json!({"features": features})).await
    }

    /// Pages that are loaded from now on run no script.
    pub async fn without_scripts(&self) -> Result<()> {
        self.chromium("Emulation.setScriptExecutionDisabled", json!({"value": true})).await
    }

    async fn chromium(&self, command: &str, params: Value) -> Result<()> {
        let asked = OfChromium(json!({"cmd": command, "params": params}));
        self.client.issue_cmd(asked).await.map(drop).with_context(|| command.to_owned())
    }

    /// The text of the page as people read it.
    pub async fn text(&self) -> Result<String> {
        let text = self.run("return document.body ? document.body.innerText : ''", Vec::new()).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the page shows all these words, without loading it again.
    pub async fn shows(&self, words: &[&str]) -> Result<String> {
        self.until(&format!("{words:?} to be shown"), |text| words.iter().all(|word| text.contains(word)))
            .await
    }

    /// Waits until the page does not show these words any more.
    pub async fn hides(&self, words: &str) -> Result<String> {
        self.until(&format!("{words:?} to go"), |text| !text.contains(words)).await
    }

    /// Waits until the page has an element of this selector, without loading it again.
    pub async fn has(&self, selector: &str) -> Result<()> {
        self.element(selector, true).await
    }

    /// Waits until it has none any more.
    pub async fn lacks(&self, selector: &str) -> Result<()> {
        self.element(selector, false).await
    }

    async fn element(&self, selector: &str, wanted: bool) -> Result<()> {
        const FOUND: &str = "return document.querySelector(arguments[0]) !== null";
        let deadline = Instant::now() + SOON;
        // A page that is just being left cannot be asked.
        while !self.run(FOUND, vec![selector.into()]).await.is_ok_and(|found| found == wanted) {
            let text = self.text().await.unwrap_or_default();
            ensure!(Instant::now() < deadline, "{selector} is there: {}; the page shows:\n{text}", !wanted);
            sleep(LOOK).await;
        }
        Ok(())
    }

    async fn until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> Result<String> {
        let deadline = Instant::now() + SOON;
        loop {
            let last = match self.text().await {
                Ok(text) if is_so(&text) => return Ok(text),
                Ok(text) => text,
                // A page that is just being left cannot be read.
                Err(error) => format!("{error:#}"),
            };
            ensure!(Instant::now() < deadline, "waited for {what}; the page shows:\n{last}");
            sleep(LOOK).await;
        }
    }

    /// Names of the buttons that can be pressed.
    pub async fn buttons(&self) -> Result<Vec<String>> {
        const NAMES: &str =
            "return [...document.querySelectorAll('button:enabled, input[type=submit]:enabled')]
            .filter(b => b.checkVisibility()).map(b => (b.innerText || b.value).trim())";
        let names = self.run(NAMES, Vec::new()).await?;
        Ok(serde_json::from_value(names)?)
    }

    /// The path and the body that pressing this button would send.
    pub async fn form(&self, button: &str) -> Result<(String, String)> {
        const FORM: &str = "const b = [...document.querySelectorAll('button')].find(b => b.innerText.trim() === arguments[0]);
            const to = b.hasAttribute('formaction') ? b.formAction : b.form.action;
            return [new URL(to).pathname, new URLSearchParams(new FormData(b.form, b)).toString()]";
        Ok(serde_json::from_value(self.run(FORM, vec![button.into()]).await?)?)
    }

    /// Clicks the button of this name as a mouse does.
    pub async fn press(&self, name: &str) -> Result<()> {
        self.click(&format!(
            "//button[normalize-space(.)='{name}'] | //input[@type='submit' and @value='{name}']"
        ))
        .await
    }

    /// Clicks the first link with these words.
    pub async fn follow(&self, words: &str) -> Result<()> {
        self.click(&format!("//a[contains(normalize-space(.), '{words}')]")).await
    }

    /// The page changes by itself, so what was found may be gone when it is clicked.
    async fn click(&self, path: &str) -> Result<()> {
        let deadline = Instant::now() + SOON;
        loop {
            let clicked = async { self.client.find(Locator::XPath(path)).await?.click().await };
            match Box::pin(clicked).await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() < deadline && may_come(&error) => sleep(LOOK).await,
                Err(error) => bail!("{path} cannot be clicked: {error}\n{}", self.text().await?),
            }
        }
    }

    /// Types into what has the focus.
    pub async fn keys(&self, text: &str) -> Result<()> {
        self.client
            .active_element()
            .await?
            .send_keys(text)
            .await
            .with_context(|| format!("{text:?} is not typed"))
    }

    /// Writes into the field with this name, as soon as it takes anything.
    pub async fn write(&self, field: &str, text: &str) -> Result<()> {
        let path = format!("//*[@name='{field}']");
        let deadline = Instant::now() + SOON;
        loop {
            let written = async { self.client.find(Locator::XPath(&path)).await?.send_keys(text).await };
            match Box::pin(written).await {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() < deadline && may_come(&error) => sleep(LOOK).await,
                Err(error) => bail!("{field} cannot be written: {error}\n{}", self.text().await?),
            }
        }
    }

    /// Marks the document, so that it is noticed when it is loaded anew.
    pub async fn mark(&self) -> Result<()> {
        self.run("window.emcoTestMark = true", Vec::new()).await.map(drop)
    }

    /// Whether it is the document that was marked.
    pub async fn is_marked(&self) -> Result<bool> {
        Ok(self.run("return window.emcoTestMark === true", Vec::new()).await? == true)
    }
}

/// Enough of a script to find it.
fn begin(script: &str) -> String {
    script.chars().take(200).collect()
}

fn may_come(error: &CmdError) -> bool {
    error.is_no_such_element()
        || error.is_stale_element_reference()
        || matches!(error, CmdError::Standard(why) if why.error == ErrorStatus::ElementClickIntercepted)
        || error.is_element_not_interactable()
}
