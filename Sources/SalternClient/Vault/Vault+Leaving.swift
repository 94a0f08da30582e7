internal import Cryptography
internal import Foundation

extension Vault {
    /// Deletes the account with everything in it, on the server and here. There is no way back.
    ///
    /// When no reply comes it may be done already: called again within an hour it finds out.
    /// - Parameter discardingUnsentEdits: Without it, edits that the server does not have keep everything as it is.
    /// - Throws: ``VaultError/unsentEdits(count:)``; when they were made while the server was asked, the account may be gone.
    public func leave(password: Password, discardingUnsentEdits: Bool = false) async throws(VaultError) {
        // Whoever has no session any more may have no account: that is found out below.
        do throws(VaultError) { try await settleBeforeProof() } catch .sessionEnded {}
        let opened = try open
        let credentials = try possibleCredentials(opened)
        let (proof, isOwn) = try await proof(password, credentials)
        if !discardingUnsentEdits {
            let unsent = try unsentCount()
            guard unsent == 0 else { throw .unsentEdits(count: unsent) }
        }
        let before = try stored { try store.number(.leaving) }
        var mayBeDone = before.map { (0..<3_600).contains(Self.now - $0) } ?? false
        var hasLeftDevice = false
        try stored { try store.set(.leaving, Self.now) }
        do throws(APIError) {
            try await settings.retries({ () throws(APIError) in
                do throws(APIError) {
                    try await self.api.deleteAccount(currentPasswordKey: proof, opened.token)
                } catch {
                    if error.mayBeDone { (mayBeDone, hasLeftDevice) = (true, true) }
                    throw error
                }
            })
        } catch {
            // A password that was never the right one here, or is no more, leads nowhere also while there is an account.
            guard error.code == .unauthenticated, mayBeDone, isOwn, try await isGone(credentials) else {
                let isKnown = error.code == .unauthenticated ? isOwn || !mayBeDone : error.isRefusal
                try stored {
                    if isKnown {
                        // What is refused now was not done before either.
                        try store.set(.leaving, nil)
                    } else if !hasLeftDevice {
                        try store.set(.leaving, before.map { Array(String($0).utf8) })
                    }
                }
                throw VaultError(error)
            }
        }
        try forgetEverything(keepsUnsentEdits: !discardingUnsentEdits)
    }

    private static var now: Int64 { Int64(Date().timeIntervalSince1970) }

    /// Who logs in with what.
    private struct Credential {
        let userid: String
        let iterations: Int
        let passwordKey: SecretBytes
    }

    /// What may be in force: what is known here, and what a change has made of it whose end nobody has seen.
    private func possibleCredentials(_ opened: Opened) throws(VaultError) -> [Credential] {
        var credentials = [
            Credential(
                userid: opened.userid, iterations: try knownIterations(), passwordKey: opened.password.passwordKey)
        ]
        if case .credential(let changed)? = try unconfirmedChange()?.outcome,
            let password = changed.password(under: opened.password)
        {
            credentials.append(
                Credential(
                    userid: changed.userid, iterations: changed.iterations, passwordKey: password.passwordKey))
        }
        return credentials
    }

    /// What is shown to the server of the password.
    /// - Returns: Also whether it is one of those that may be in force.
    private func proof(
        _ password: Password, _ credentials: [Credential]
    ) async throws(VaultError) -> (SecretBytes, isOwn: Bool) {
        var first: SecretBytes?
        for credential in credentials {
            let key = try await stretch(password, credential.userid, credential.iterations).passwordKey
            if key.bytes == credential.passwordKey.bytes { return (key, true) }
            first = first ?? key
        }
        guard let first else { throw .locked }
        return (first, false)
    }

    /// Whether there is no account any more to which any of them leads: a session may have ended for another reason.
    private func isGone(_ credentials: [Credential]) async throws(VaultError) -> Bool {
        let device = DeviceClaim(name: settings.deviceName, token: try secret(.deviceToken).map(Token.init))
        for credential in credentials {
            do throws(VaultError) {
                let reply = try await call { api throws(APIError) in
                    try await api.logIn(
                        userid: credential.userid, passwordKey: credential.passwordKey, device: device)
                }
                try? await api.endCurrentSession(reply.session.token)
                return false
            } catch {
                switch error {
                case .wrongCredentials: continue
                case .codeRequired: return false
                default: throw error
                }
            }
        }
        return true
    }
}
