import SalternServer

/// The apps that open links to shares.
extension Settings {
    mutating func appLinks() -> AppLinks {
        AppLinks(
            apple: list(
                "SALTERN_APPLE_APP_IDS", "app ids such as A1B2C3D4E5.org.example.notes", "an app", AppleAppID.init),
            android: list(
                "SALTERN_ANDROID_APPS", "apps such as org.example.notes=AB:CD:… (SHA-256 of the signing certificate)",
                "an app", AndroidApp.init),
            appStoreID: appStoreID())
    }

    private mutating func appStoreID() -> AppStoreID? {
        guard let text = text("SALTERN_APP_STORE_ID", orNothing: "none") else { return nil }
        if let id = AppStoreID(text) { return id }
        refuse(
            "SALTERN_APP_STORE_ID", text, mustBe: "none, or the number of an app in the App Store, such as 123456789")
        return nil
    }

    /// Returns the texts between commas, without the white space around them.
    static func elements(of text: String) -> [String] {
        text.split(separator: ",", omittingEmptySubsequences: false).map { word in
            String(word.trimmingPrefix(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed())
        }
    }

    /// Reads elements between commas, without the white space around them. Rejects empty, repeated and unreadable
    /// elements.
    /// - Parameter element: The description of an element, with its article.
    mutating func list<Value: Hashable>(
        _ name: String, _ meaning: String, _ element: String, _ read: (String) -> Value?
    ) -> [Value] {
        guard let text = text(name, orNothing: "none") else { return [] }
        let values = Self.elements(of: text).map(read)
        let known = values.compactMap(\.self)
        if known.count < values.count { refuse(name, text, mustBe: "none, or \(meaning), separated by commas") }
        if Set(known).count < known.count { note("\(name) has \(element) twice") }
        return known
    }
}
