internal import Cryptography
internal import Foundation

/// Requests about the account: its sessions, events, data and second factor.
struct AccountRequests {
    let session: VaultSession

    /// Returns the account's sessions, one for each device that is logged in.
    func sessions() async throws(VaultError) -> [SessionDescription] {
        let token = try session.open.token
        return try await session.call { api throws(APIError) in try await api.listSessions(token) }
    }

    /// Ends one session.
    func endSession(_ id: SessionID) async throws(VaultError) {
        let token = try session.open.token
        try await session.call { api throws(APIError) in try await api.endSession(id, token) }
    }

    /// Ends all sessions except this one.
    @discardableResult
    func endOtherSessions() async throws(VaultError) -> Int {
        let token = try session.open.token
        let reply = try await session.call { api throws(APIError) in try await api.endOtherSessions(token) }
        if let device = reply.deviceToken {
            try session.stored { try session.deviceSecrets.change([.deviceToken: device.text]) }
        }
        return reply.ended
    }

    /// Returns a page of the account's security log, the latest event first.
    func events(page: String? = nil) async throws(VaultError) -> SecurityLogPage {
        let token = try session.open.token
        let found = try await session.call { api throws(APIError) in try await api.listEvents(page: page, token) }
        // Otherwise a reader of all pages would never end.
        guard found.nextPage == nil || !found.events.isEmpty else { throw .unavailable(.unexpectedReply) }
        return found
    }

    /// Writes all data of the account on the server to a new file, one JSON object a line.
    func export(to file: URL, password: Password) async throws(VaultError) {
        let opened = try session.open
        let proof = try await session.credentials.proof(password)
        let stream = try await session.call { api throws(APIError) in
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
                session.observers.progress.notify(.exported(count))
            }
        } catch {
            throw error as? VaultError ?? .unavailable(.transport(error as? TransportError ?? .connectionLost))
        }
        // A complete export ends with the line `end`.
        let line = last.split(separator: UInt8(ascii: "\n")).last.map { String(decoding: $0, as: UTF8.self) }
        guard line?.hasPrefix(#"{"type":"end""#) == true else { throw .unavailable(.unexpectedReply) }
        try file.finish()
    }

    /// Generates a secret for one-time passwords. It is valid once it is confirmed.
    func beginSecondFactor(password: Password) async throws(VaultError) -> TOTPSecret {
        let opened = try session.open
        let proof = try await session.credentials.proof(password)
        return try await session.call { api throws(APIError) in
            try await api.beginTOTP(currentPasswordKey: proof, opened.token)
        }
    }

    /// Confirms the secret with a code of the authenticator app.
    func confirmSecondFactor(code: String) async throws(VaultError) -> [String] {
        let token = try session.open.token
        let code = try PastedText.oneTimeCode(code)
        do throws(APIError) { return try await session.api.confirmTOTP(code, token) } catch { throw VaultError(error) }
    }

    /// Returns ten new recovery codes of the second factor. The previous ones become invalid.
    func renewSecondFactorCodes(password: Password) async throws(VaultError) -> [String] {
        let opened = try session.open
        let proof = try await session.credentials.proof(password)
        return try await session.call { api throws(APIError) in
            try await api.renewRecoveryCodes(currentPasswordKey: proof, opened.token)
        }
    }

    /// Removes the second factor: log-ins then need no code.
    func endSecondFactor(password: Password) async throws(VaultError) {
        let opened = try session.open
        let proof = try await session.credentials.proof(password)
        try await session.call { api throws(APIError) in try await api.endTOTP(currentPasswordKey: proof, opened.token)
        }
    }
}
