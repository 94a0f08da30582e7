internal import HTTPCore

/// The operator's apps that open links to shares instead of the browser.
public struct AppLinks: Sendable, Equatable {
    public var apple: [AppleAppID]
    public var android: [AndroidApp]
    /// The app that Safari offers on a share's page.
    public var appStoreID: AppStoreID?

    public init(apple: [AppleAppID] = [], android: [AndroidApp] = [], appStoreID: AppStoreID? = nil) {
        self.apple = apple
        self.android = android
        self.appStoreID = appStoreID
    }
}

/// Identifies an app of Apple's platforms: `TEAMID.bundle.id`, for example `A1B2C3D4E5.org.example.notes`.
public struct AppleAppID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless the text is ten capital letters and digits, a period, and a bundle identifier.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 10, parts[0].utf8.allSatisfy(Self.isTeamCharacter),
            text.utf8.count <= 255,
            parts[1].split(separator: ".", omittingEmptySubsequences: false).allSatisfy(Self.isBundlePart)
        else { return nil }
        description = text
    }

    private static func isTeamCharacter(_ byte: UInt8) -> Bool {
        ASCII.isDigit(byte) || ASCII.isLetter(byte) && ASCII.lowercased(byte) != byte
    }

    private static func isBundlePart(_ part: Substring) -> Bool {
        !part.isEmpty && part.utf8.allSatisfy { ASCII.isLetter($0) || ASCII.isDigit($0) || $0 == ASCII.minus }
    }
}

/// The App Store's number of an app.
public struct AppStoreID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless the text is 1 to 15 digits without a leading zero.
    public init?(_ text: String) {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy(ASCII.isDigit), text.first != "0" else {
            return nil
        }
        description = text
    }
}
