import SalternClient

extension NotesModel {
    /// Makes a new account.
    public func signUp(_ userid: String, _ password: String) async throws {
        try await use(Vault.signUp(settings, userid: userid, password: Password(password)))
    }

    /// Logs in on this device.
    /// - Parameter code: Of the second factor, for accounts that have one.
    public func logIn(_ userid: String, _ password: String, code: String? = nil) async throws {
        try await use(Vault.logIn(settings, userid: userid, password: Password(password), code: code))
        try await syncNow()
    }

    /// Sets a new password with the printed code, and logs in with it.
    public func recover(_ userid: String, code: String, newPassword: String) async throws {
        guard let code = RecoveryCode(code) else { throw VaultError.malformedRecoveryCode }
        try await use(Vault.recover(settings, userid: userid, code: code, newPassword: Password(newPassword)))
        try await syncNow()
    }

    /// True when the session has ended: nothing is sent before ``logInAgain(_:code:)``.
    public var wantsLogIn: Bool {
        if case .failed(.sessionEnded, _) = account?.state { true } else { false }
    }

    /// Opens a new session after the old one has ended. What was not sent is still here.
    public func logInAgain(_ password: String, code: String? = nil) async throws {
        try await vault.logInAgain(password: Password(password), code: code)
        try await syncNow()
    }

    /// Forgets the keys: from now on the password is needed.
    public func lock() async throws { try await vault.lock() }

    /// Opens the notes again, without network.
    public func unlock(_ password: String) async throws { try await vault.unlock(Password(password)) }

    /// Sends and fetches now.
    public func syncNow() async throws { try await vault.sync() }

    /// Sets a new password. All other devices have to log in again.
    public func changePassword(from current: String, to new: String) async throws {
        try await vault.changePassword(from: Password(current), to: Password(new))
    }

    /// Returns a code to print, which sets a new password when this one is forgotten. An earlier code opens nothing any more.
    public func makeRecoveryCode(_ password: String) async throws -> String {
        try await vault.makeRecoveryCode(password: Password(password)).text
    }

    /// Returns where the person is logged in.
    public func devices() async throws -> [SessionDescription] { try await vault.sessions() }

    /// Logs another device out.
    public func endSession(_ id: SessionID) async throws { try await vault.endSession(id) }

    /// Removes everything from this device.
    /// - Parameter discardingUnsentEdits: Without it, edits that the server does not have are an error.
    public func signOut(discardingUnsentEdits: Bool = false) async throws {
        try await vault.signOut(discardingUnsentEdits: discardingUnsentEdits)
    }

    /// Deletes the account with all notes, on the server and here. There is no way back.
    public func deleteAccount(_ password: String) async throws {
        try await vault.leave(password: Password(password))
    }
}
