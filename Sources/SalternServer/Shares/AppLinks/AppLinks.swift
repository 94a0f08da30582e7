internal import HTTPCore

/// The operator's apps, in which links to shares open instead of in the browser.
public struct AppLinks: Sendable, Equatable {
    public var apple: [AppleAppID]
    public var android: [AndroidApp]
    /// The app that Safari offers on the page of a share.
    public var appStoreID: AppStoreID?

    public init(apple: [AppleAppID] = [], android: [AndroidApp] = [], appStoreID: AppStoreID? = nil) {
        self.apple = apple
        self.android = android
        self.appStoreID = appStoreID
    }
}

/// Which app of Apple's platforms: `TEAMID.bundle.id`, for example `A1B2C3D4E5.org.example.notes`.
public struct AppleAppID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless it is ten capital letters and digits, a period, and a bundle identifier.
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

/// The number that the App Store gave an app.
public struct AppStoreID: Sendable, Hashable, CustomStringConvertible {
    public let description: String

    /// Nil unless it is 1 to 15 digits that do not begin with zero.
    public init?(_ text: String) {
        guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy(ASCII.isDigit), text.first != "0" else {
            return nil
        }
        description = text
    }
}
