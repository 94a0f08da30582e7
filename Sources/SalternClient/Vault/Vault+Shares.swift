public import Cryptography
public import Foundation

extension Vault {
    /// The account's open shares, the newest first.
    public func shares() async throws(VaultError) -> [ShareHeader] {
        let token = try open.token
        var shares: [ShareHeader] = []
        var next: String?
        repeat {
            let page = try await call { [next] api throws(APIError) in try await api.listShares(page: next, token) }
            shares += page.shares
            next = page.nextPage
        } while next != nil
        return shares
    }

    /// Ends a share: its link opens nothing any more.
    /// - Throws: ``VaultError/notFound`` when the account has no such share.
    public func endShare(_ id: String) async throws(VaultError) {
        let token = try open.token
        do throws(APIError) {
            try await settings.retries({ () throws(APIError) in try await api.deleteShare(id, token) })
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
    }
}

extension ShareLink {
    /// Opens what a link leads to, at the price of a view. Nobody has to be logged in for it.
    /// - Parameter transport: Leads to the server that the link names.
    public static func open(_ link: URL, over transport: any HTTPTransport) async throws(VaultError) -> SecureBytes {
        guard let passphrase = link.fragment(percentEncoded: false), link.pathComponents.count == 3,
            link.pathComponents[1] == "s"
        else { throw .notFound }
        let payload: SharePayload
        do throws(APIError) {
            payload = try await SalternAPI(transport).openShare(link.pathComponents[2])
        } catch {
            throw error.code == .notFound ? .notFound : VaultError(error)
        }
        guard let opened = try? open(payload, passphrase) else { throw .unreadable }
        return opened
    }
}
