internal import Cryptography
public import Foundation

extension Vault {
    // MARK: The account

    /// Plan, limits and usage.
    public func account() async throws(VaultError) -> AccountDescription {
        let token = try open.token
        let account = try await call { api throws(APIError) in try await api.getAccount(token) }
        try note(account.limits)
        return account
    }

    /// Keeps what is asked for where there is no network.
    func note(_ limits: AccountDescription.Limits) throws(VaultError) {
        try stored {
            if try store.number(.itemBytes) != limits.itemBytes { try store.set(.itemBytes, limits.itemBytes) }
        }
    }

    /// Where the person is logged in.
    public func sessions() async throws(VaultError) -> [SessionDescription] {
        let token = try open.token
        return try await call { api throws(APIError) in try await api.listSessions(token) }
    }

    /// Ends one session.
    public func endSession(_ id: SessionID) async throws(VaultError) {
        let token = try open.token
        try await call { api throws(APIError) in try await api.endSession(id, token) }
    }

    /// Ends all sessions but this one.
    /// - Returns: How many there were.
    @discardableResult
    public func endOtherSessions() async throws(VaultError) -> Int {
        let token = try open.token
        let reply = try await call { api throws(APIError) in try await api.endOtherSessions(token) }
        if let device = reply.deviceToken {
            let seal = try deviceSeal()
            try stored { try store.set(.deviceToken, seal.seal(device.text, .deviceToken)) }
        }
        return reply.ended
    }

    /// What has happened to the account, the latest first.
    /// - Parameter page: From the page before; nil for the first.
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for a page that has nothing and leads on.
    public func events(page: String? = nil) async throws(VaultError) -> SecurityLogPage {
        let token = try open.token
        let found = try await call { api throws(APIError) in try await api.listEvents(page: page, token) }
        // Whoever follows the pages would follow them for ever.
        guard found.nextPage == nil || !found.events.isEmpty else { throw .unavailable(.unexpectedReply) }
        return found
    }

    /// Deletes the account with everything in it, on the server and here. There is no way back.
    ///
    /// When no reply comes it may be done already: called again within an hour it finds out.
    /// - Parameter discardingUnsentEdits: Without it, edits that the server does not have keep everything as it is.
    /// - Throws: ``VaultError/unsentEdits(count:)``; when they were made while the server was asked, the account may be gone.
    public func leave(password: Password, discardingUnsentEdits: Bool = false) async throws(VaultError) {
        let proof = try await proof(password)
        let opened = try open
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
            let isOwn = proof.bytes == opened.password.passwordKey.bytes
            guard error.code == .unauthenticated, mayBeDone, isOwn, try await isGone(opened.userid, proof) else {
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

    /// Whether there is no account any more to which userid and password lead: a session may have ended for another reason.
    private func isGone(_ userid: String, _ proof: SecretBytes) async throws(VaultError) -> Bool {
        let device = DeviceClaim(name: settings.deviceName, token: try secret(.deviceToken).map(Token.init))
        do throws(VaultError) {
            let reply = try await call { api throws(APIError) in
                try await api.logIn(userid: userid, passwordKey: proof, device: device)
            }
            try? await api.endCurrentSession(reply.session.token)
            return false
        } catch {
            switch error {
            case .wrongCredentials: return true
            case .codeRequired: return false
            default: throw error
            }
        }
    }

    /// Writes everything that the server holds about the account to a new file, one JSON object a line.
    /// - Throws: ``VaultError/unavailable(_:)`` when it broke off; the file is removed then. ``StoreError/unusable`` when
    ///   there is such a file.
    public func export(to file: URL, password: Password) async throws(VaultError) {
        let opened = try open
        let proof = try await proof(password)
        let stream = try await call { api throws(APIError) in
            try await api.exportAccount(currentPasswordKey: proof, opened.token)
        }
        let target = try NewFile(file)
        do throws(VaultError) {
            try await write(stream.body, to: target)
        } catch {
            target.remove()
            throw error
        }
    }

    private func write(_ body: ReplyBody, to file: NewFile) async throws(VaultError) {
        var last: [UInt8] = []
        var count = 0
        do {
            for try await piece in body {
                try file.append(piece)
                last = Array((last + piece).suffix(1_024))
                count += piece.count
                progressObservers.tell(.exported(count))
            }
        } catch {
            throw error as? VaultError ?? .unavailable(.transport(error as? TransportError ?? .connectionLost))
        }
        // Only an export whose last line says so is whole.
        let line = last.split(separator: UInt8(ascii: "\n")).last.map { String(decoding: $0, as: UTF8.self) }
        guard line?.hasPrefix(#"{"type":"end""#) == true else { throw .unavailable(.unexpectedReply) }
        try file.finish()
    }

    // MARK: The second factor

    /// Draws a secret for one-time passwords. It counts once it is confirmed.
    public func beginSecondFactor(password: Password) async throws(VaultError) -> TOTPSecret {
        let opened = try open
        let proof = try await proof(password)
        return try await call { api throws(APIError) in
            try await api.beginTOTP(currentPasswordKey: proof, opened.token)
        }
    }

    /// Confirms it with a code of the authenticator app.
    /// - Returns: Ten recovery codes, shown once.
    public func confirmSecondFactor(code: String) async throws(VaultError) -> [String] {
        let token = try open.token
        do throws(APIError) { return try await api.confirmTOTP(code, token) } catch { throw VaultError(error) }
    }

    /// Ten recovery codes in the place of those that are left.
    public func renewSecondFactorCodes(password: Password) async throws(VaultError) -> [String] {
        let opened = try open
        let proof = try await proof(password)
        return try await call { api throws(APIError) in
            try await api.renewRecoveryCodes(currentPasswordKey: proof, opened.token)
        }
    }

    /// Log-ins need no code any more.
    public func endSecondFactor(password: Password) async throws(VaultError) {
        let opened = try open
        let proof = try await proof(password)
        try await call { api throws(APIError) in try await api.endTOTP(currentPasswordKey: proof, opened.token) }
    }

    private func proof(_ password: Password) async throws(VaultError) -> SecretBytes {
        try await settleBeforeProof()
        return try await stretch(password, open.userid, knownIterations()).passwordKey
    }
}
