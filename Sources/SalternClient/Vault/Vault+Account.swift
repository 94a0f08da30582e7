internal import Cryptography
public import Foundation

extension Vault {
    // MARK: The account

    /// Returns plan, limits and usage, from the server.
    ///
    /// ```swift
    /// let account = try await vault.account()
    /// print("\(account.usage.bytes) of \(account.limits.bytes) bytes")
    /// ```
    public func account() async throws(VaultError) -> AccountDescription {
        try await plan.account()
    }

    /// Returns the account's sessions, one for each device that is logged in.
    ///
    /// ```swift
    /// for session in try await vault.sessions() where !session.current { print(session.device?.name ?? "unnamed") }
    /// ```
    public func sessions() async throws(VaultError) -> [SessionDescription] {
        let token = try open.token
        return try await call { api throws(APIError) in try await api.listSessions(token) }
    }

    /// Ends one session.
    ///
    /// ```swift
    /// for session in try await vault.sessions() where session.device?.name == "old phone" {
    ///     try await vault.endSession(session.id)
    /// }
    /// ```
    public func endSession(_ id: SessionID) async throws(VaultError) {
        let token = try open.token
        try await call { api throws(APIError) in try await api.endSession(id, token) }
    }

    /// Ends all sessions except this one.
    ///
    /// ```swift
    /// try await vault.endOtherSessions()
    /// ```
    /// - Returns: The number of ended sessions.
    @discardableResult
    public func endOtherSessions() async throws(VaultError) -> Int {
        let token = try open.token
        let reply = try await call { api throws(APIError) in try await api.endOtherSessions(token) }
        if let device = reply.deviceToken {
            try stored { try session.deviceSecrets.change([.deviceToken: device.text]) }
        }
        return reply.ended
    }

    /// Returns a page of the account's security log, the latest event first.
    ///
    /// ```swift
    /// let page = try await vault.events()
    /// for event in page.events { print(event.occurredAt, event.kind) }
    /// ```
    /// - Parameter page: The value from the previous page; nil for the first page.
    /// - Throws: ``APIError/unexpectedReply`` in ``VaultError/unavailable(_:)`` for an empty page with a next page.
    public func events(page: String? = nil) async throws(VaultError) -> SecurityLogPage {
        let token = try open.token
        let found = try await call { api throws(APIError) in try await api.listEvents(page: page, token) }
        // Otherwise a reader of all pages would never end.
        guard found.nextPage == nil || !found.events.isEmpty else { throw .unavailable(.unexpectedReply) }
        return found
    }

    /// Writes all data of the account on the server to a new file, one JSON object a line.
    ///
    /// ```swift
    /// try await vault.export(to: file, password: password)
    /// ```
    /// - Throws: ``VaultError/unavailable(_:)`` when the export was interrupted; the file is then removed.
    ///   ``StoreError/unusable`` when the file exists.
    public func export(to file: URL, password: Password) async throws(VaultError) {
        let opened = try open
        let proof = try await session.credentials.proof(password)
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
                observers.progress.notify(.exported(count))
            }
        } catch {
            throw error as? VaultError ?? .unavailable(.transport(error as? TransportError ?? .connectionLost))
        }
        // A complete export ends with the line `end`.
        let line = last.split(separator: UInt8(ascii: "\n")).last.map { String(decoding: $0, as: UTF8.self) }
        guard line?.hasPrefix(#"{"type":"end""#) == true else { throw .unavailable(.unexpectedReply) }
        try file.finish()
    }

    // MARK: The second factor

    /// Generates a secret for one-time passwords. It is valid once it is confirmed.
    ///
    /// ```swift
    /// let secret = try await vault.beginSecondFactor(password: password)
    /// print(secret.uri)  // as a QR code
    /// let codes = try await vault.confirmSecondFactor(code: typed)
    /// print(codes)  // to print or to write down
    /// ```
    public func beginSecondFactor(password: Password) async throws(VaultError) -> TOTPSecret {
        let opened = try open
        let proof = try await session.credentials.proof(password)
        return try await call { api throws(APIError) in
            try await api.beginTOTP(currentPasswordKey: proof, opened.token)
        }
    }

    /// Confirms the secret with a code of the authenticator app.
    ///
    /// ```swift
    /// for code in try await vault.confirmSecondFactor(code: typed) { print(code) }
    /// ```
    /// - Returns: Ten recovery codes, shown once.
    public func confirmSecondFactor(code: String) async throws(VaultError) -> [String] {
        let token = try open.token
        let code = try PastedText.oneTimeCode(code)
        do throws(APIError) { return try await session.api.confirmTOTP(code, token) } catch { throw VaultError(error) }
    }

    /// Returns ten new recovery codes of the second factor. The previous ones become invalid.
    ///
    /// ```swift
    /// for code in try await vault.renewSecondFactorCodes(password: password) { print(code) }
    /// ```
    public func renewSecondFactorCodes(password: Password) async throws(VaultError) -> [String] {
        let opened = try open
        let proof = try await session.credentials.proof(password)
        return try await call { api throws(APIError) in
            try await api.renewRecoveryCodes(currentPasswordKey: proof, opened.token)
        }
    }

    /// Removes the second factor: log-ins then need no code.
    ///
    /// ```swift
    /// try await vault.endSecondFactor(password: password)
    /// ```
    public func endSecondFactor(password: Password) async throws(VaultError) {
        let opened = try open
        let proof = try await session.credentials.proof(password)
        try await call { api throws(APIError) in try await api.endTOTP(currentPasswordKey: proof, opened.token) }
    }
}
