internal import Cryptography
internal import Foundation

extension Vault {
    /// Deletes the account with everything in it, on the server and here. There is no way back.
    ///
    /// When no reply comes it may be done already: called again within an hour it finds out.
    ///
    /// ```swift
    /// try await vault.leave(password: Password(typed))
    /// ```
    /// - Parameter discardingUnsentEdits: Without it, edits that the server does not have keep everything as it is.
    /// - Throws: ``VaultError/unsentEdits(count:)``; when they were made while the server was asked, the account may be gone.
    public func leave(password: Password, discardingUnsentEdits: Bool = false) async throws(VaultError) {
        // Whoever has no session any more may have no account: that is found out below.
        do throws(VaultError) { try await settleBeforeProof() } catch .sessionEnded {}
        let opened = try open
        let credentials = try possibleCredentials(opened)
        let (proof, isOwn, candidates) = try await proofs(password, credentials)
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
            guard error.code == .unauthenticated, mayBeDone, isOwn, candidates.count == credentials.count,
                try await isGone(candidates)
            else {
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
        let password: KnownPassword
    }

    /// What may be in force: what is known here, and what a change has made of it whose end nobody has seen.
    private func possibleCredentials(_ opened: Opened) throws(VaultError) -> [Credential] {
        var credentials = [
            Credential(userid: opened.userid, iterations: try knownIterations(), password: opened.password)
        ]
        if case .credential(let changed)? = try unconfirmedChange()?.outcome,
            let password = try self.password(of: changed, under: opened.password)
        {
            credentials.append(
                Credential(userid: changed.userid, iterations: changed.iterations, password: password))
        }
        return credentials
    }

    /// What a log-in sends.
    private struct Proof {
        let userid: String
        let passwordKey: SecretBytes
    }

    /// What is shown to the server of the password.
    /// - Returns: Also whether it is one of those that may be in force, and what logs in with each of them: fewer when a change
    ///   of the password has no known end, and this process has not seen the other password.
    private func proofs(
        _ password: Password, _ credentials: [Credential]
    ) async throws(VaultError) -> (SecretBytes, isOwn: Bool, all: [Proof]) {
        var first: SecretBytes?
        var own: SecretBytes?
        var all: [Proof] = []
        for credential in credentials {
            let stretched = try await stretch(password, credential.userid, credential.iterations)
            first = first ?? stretched.passwordKey
            let matches = credential.password.matches(stretched)
            if matches { own = own ?? stretched.passwordKey }
            if let key = matches ? stretched.passwordKey : credential.password.passwordKey {
                all.append(Proof(userid: credential.userid, passwordKey: key))
            }
        }
        guard let first else { throw .locked }
        return (own ?? first, own != nil, all)
    }

    /// Whether there is no account any more to which any of them leads: a session may have ended for another reason.
    private func isGone(_ credentials: [Proof]) async throws(VaultError) -> Bool {
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
