//! The pages of the console: plain data in, HTML out.
//!
//! Nothing here knows the store, sessions or HTTP. A handler fills a struct, whose name ends in `Page`, and renders it with
//! `askama::Template::render`. Times are seconds since 1970, UTC.

pub(crate) mod format;
pub(crate) mod chart;
pub(crate) mod outcomes;
pub(crate) mod snippets;
pub(crate) mod credits_today;
pub(crate) mod list_pages;
pub(crate) mod entry;
pub(crate) mod overview;
pub(crate) mod keys;
pub(crate) mod usage;
pub(crate) mod try_it;
pub(crate) mod user_settings;
pub(crate) mod live;
pub(crate) mod accounts;
pub(crate) mod audit_log;
pub(crate) mod configuration;
pub(crate) mod error;

/// The data that every page needs besides its own.
///
/// It has no `Debug`, because the token is a credential.
pub(crate) struct PageFrame {
    /// The first part of the title in the browser's tab, such as `Keys`.
    pub(crate) title: String,
    /// The name of the network that the gateway serves, such as `mainnet` or `demo`.
    pub(crate) network: String,
    pub(crate) now: i64,
    /// The token of the hidden field `csrf`, which every form that changes something sends.
    pub(crate) csrf: String,
    /// Who is signed in; `None` on the pages for anyone, which have no navigation.
    pub(crate) user: Option<SignedInUser>,
    /// The item of the navigation that is marked as the current one.
    pub(crate) active: NavigationItem,
    /// The outcome of the last action, shown once at the top.
    pub(crate) flash: Option<Flash>,
    pub(crate) assets: AssetPaths,
}

impl PageFrame {
    /// Whether an email address is that of the user.
    pub(crate) fn is_own_email(&self, email: &str) -> bool {
        self.user.as_ref().is_some_and(|user| user.email == email)
    }

    /// Whether the page is below this item of the navigation.
    pub(crate) fn is_active(&self, item: &NavigationItem) -> bool {
        self.active == *item
    }

    /// The items of the navigation that the user may open.
    pub(crate) fn navigation(&self) -> Vec<NavigationItem> {
        let Some(user) = &self.user else { return Vec::new() };
        let mut items = Vec::new();
        if user.is_operator {
            items.extend([NavigationItem::Live, NavigationItem::Accounts]);
        }
        if user.account.is_some() {
            items.extend([NavigationItem::Overview, NavigationItem::Keys, NavigationItem::Usage]);
        }
        items.push(NavigationItem::TryIt);
        if user.is_operator {
            items.extend([NavigationItem::AuditLog, NavigationItem::Configuration]);
        }
        items.push(NavigationItem::UserSettings);
        items
    }
}

/// The user of the session.
#[derive(Clone, Debug)]
pub(crate) struct SignedInUser {
    pub(crate) email: String,
    pub(crate) is_operator: bool,
    /// The name of the user's account; operators may have none, and then see no pages about keys and usage.
    pub(crate) account: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NavigationItem {
    Overview,
    Keys,
    Usage,
    TryIt,
    UserSettings,
    Live,
    Accounts,
    AuditLog,
    Configuration,
    /// No item is marked: sign-in and error pages.
    None,
}

impl NavigationItem {
    /// Its path, its label, and the shape of its icon in a square of 20 units, drawn with lines.
    #[rustfmt::skip]
    fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Overview => ("/", "Overview", "M3 9.5 10 3l7 6.5V17h-5v-5H8v5H3z"),
            Self::Keys => ("/keys", "Keys", "M12.5 7.5h.01M7 13l-4 4M7.9 12.1 5 15l2 2M8 8a4.5 4.5 0 1 1 4 4.5L10 12l-1.500 1.500L8 10z"),
            Self::Usage => ("/usage", "Usage", "M4 17V10M8 17V4M12 17v-5M16 17V7"),
            Self::TryIt => ("/try", "Try it", "M5 3.500v13l11-6.500z"),
            Self::UserSettings => ("/settings", "Settings", "M3 6h7M14 6h3M3 14h3M10 14h7M12 4v4M8 12v4"),
            Self::Live => ("/live", "Live", "M2 10h4l2-6 4 12 2-6h4"),
            Self::Accounts => ("/accounts", "Accounts", "M7.500 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 17c0-3 2.500-5 5.500-5s5.500 2 5.500 5M13 3.500a3 3 0 0 1 0 5M15 12.500c1.800.7 3 2.300 3 4.500"),
            Self::AuditLog => ("/audit", "Audit log", "M5 3h10v14H5zM8 7h4M8 10h4M8 13h2"),
            Self::Configuration => ("/configuration", "Configuration", "M7 5 2 10l5 5M13 5l5 5-5 5"),
            Self::None => ("/", "", ""),
        }
    }

    pub(crate) fn path(self) -> &'static str {
        self.row().0
    }

    pub(crate) fn label(self) -> &'static str {
        self.row().1
    }

    pub(crate) fn icon(self) -> &'static str {
        self.row().2
    }
}

/// A message about the last action, such as `Key renamed.`
#[derive(Clone, Debug)]
pub(crate) struct Flash {
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

/// The paths of the embedded files, with a hash of their content, such as `/assets/console-3f9a0c41.css`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AssetPaths {
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
    pub(crate) icon: &'static str,
}

/// Why a form was not accepted. The page shows it again with what was typed, except passwords and secrets.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormErrors {
    /// The error of the form as a whole, such as `Email or password is wrong.`
    pub(crate) general: Option<String>,
    /// The errors of single fields.
    pub(crate) fields: Vec<FieldError>,
}

/// An error in one field of a form.
#[derive(Clone, Debug)]
pub(crate) struct FieldError {
    /// The `name` of the input.
    pub(crate) field: String,
    /// The error and its remedy, such as `must have at least 10 characters`.
    pub(crate) message: String,
}

impl FormErrors {
    /// An error of the form as a whole.
    pub(crate) fn general(message: impl Into<String>) -> Self {
        Self { general: Some(message.into()), fields: Vec::new() }
    }

    pub(crate) fn field(field: &str, message: impl Into<String>) -> Self {
        let error = FieldError { field: field.to_owned(), message: message.into() };
        Self { general: None, fields: vec![error] }
    }

    /// The same errors, where the field `from` is called `to` in the form.
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        let found = self.fields.iter_mut().filter(|error| error.field == from);
        found.for_each(|error| error.field = to.to_owned());
        self
    }

    /// The message about a field.
    pub(crate) fn of(&self, field: &str) -> Option<&str> {
        self.fields.iter().find(|error| error.field == field).map(|error| error.message.as_str())
    }
}

#[cfg(test)]
mod tests;
