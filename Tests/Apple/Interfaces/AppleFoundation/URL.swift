public import Foundation

extension URL {
    /// https://developer.apple.com/documentation/foundation/url/startaccessingsecurityscopedresource()
    public func startAccessingSecurityScopedResource() -> Bool { true }

    /// https://developer.apple.com/documentation/foundation/url/stopaccessingsecurityscopedresource()
    public func stopAccessingSecurityScopedResource() {}
}
