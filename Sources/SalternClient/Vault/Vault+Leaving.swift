internal import Cryptography
internal import Foundation

extension Vault {
    /// Deletes the account with all of its data, on the server and on this device. It cannot be undone.
    ///
    /// Without a reply, the account may be deleted. Call the function again within an hour to find out.
    ///
    /// ```swift
    /// try await vault.leave(password: Password(typed))
    /// ```
    /// - Parameter discardingUnsentEdits: False to throw when there are unsent edits, with nothing changed.
    /// - Throws: ``VaultError/unsentEdits(count:)``. If they were made during the request, the account may be deleted.
    public func leave(password: Password, discardingUnsentEdits: Bool = false) async throws(VaultError) {
        // Without a session the account may already be deleted, which is checked below.
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
            // A wrong or former password also fails while the account exists.
            guard error.code == .unauthenticated, mayBeDone, isOwn, candidates.count == credentials.count,
                try await isGone(candidates)
            else {
                let isKnown = error.code == .unauthenticated ? isOwn || !mayBeDone : error.isRefusal
                try stored {
                    if isKnown {
                        // If the request is rejected now, earlier ones were not carried out.
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

    /// The data of a log-in.
    private struct Credential {
        let userid: String
        let iterations: Int
        let password: KnownPassword
    }

    /// Returns the credentials that may be valid: the known one, and that of a change whose outcome is uncertain.
    private func possibleCredentials(_ opened: VaultSession.Opened) throws(VaultError) -> [Credential] {
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

    /// The proof of a log-in.
    private struct Proof {
        let userid: String
        let passwordKey: SecretBytes
    }

    /// Derives the password key for the server.
    /// - Returns: Also true when it is of a credential that may be valid, and the proofs of these credentials. Some are
    ///   missing when the outcome of a password change is uncertain and this process does not have the other password.
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

    /// Returns true when no credential opens an account. A session may also have ended for another reason.
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
