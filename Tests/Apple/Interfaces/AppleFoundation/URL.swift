public import Foundation

extension URL {
    /// https://developer.apple.com/documentation/foundation/url/applicationsupportdirectory
    public static var applicationSupportDirectory: URL { temporaryDirectory }

    /// https://developer.apple.com/documentation/foundation/url/startaccessingsecurityscopedresource()
    public func startAccessingSecurityScopedResource() -> Bool { true }

    /// https://developer.apple.com/documentation/foundation/url/stopaccessingsecurityscopedresource()
    public func stopAccessingSecurityScopedResource() {}
}
