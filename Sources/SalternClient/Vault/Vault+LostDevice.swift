extension Vault {
    /// Shuts out a lost or stolen device. It sets a new password, which ends all other sessions, replaces the data key,
    /// and creates a new printed code if the account has one.
    ///
    /// A lost device that was unlocked keeps the previous data keys and unlock key. It can read its own content, and a
    /// keyring that is sealed with the previous password. Therefore the password changes before the rotation.
    ///
    /// Each step is complete on its own. After an error in a later step, call the function again with the password that
    /// is valid then.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameter onPasswordChange: Called when the new password is valid.
    /// - Returns: The new printed code to show; nil when the account had none.
    /// - Throws: ``VaultError/deletionsHeld`` before anything is changed.
    public func shutOutLostDevice(
        password: Password, newPassword: Password, onPasswordChange: @Sendable () -> Void = {}
    ) async throws(VaultError) -> RecoveryCode? {
        // The rotation needs an empty list of held deletions, and an account whose items can be opened.
        guard try await !sync().isHeld else { throw .deletionsHeld }
        let hasCode = try await account().recovery.set
        try await changePassword(from: password, to: newPassword)
        onPasswordChange()
        try await rotateKeys(password: newPassword)
        return hasCode ? try await makeRecoveryCode(password: newPassword) : nil
    }
}
