extension Vault {
    /// Shuts out a device that was lost or stolen: sets a new password, which ends all other sessions, replaces the data key,
    /// and makes a new printed code where there was one.
    ///
    /// A lost device that was unlocked keeps the data keys and the unlock key of before. It can read what it has, and a keyring
    /// that is sealed under the previous password. Therefore the password changes first, and the rotation comes after it.
    ///
    /// Each step is complete on its own. After an error in a later step, call it again with the password that is in force then.
    ///
    /// Example: "Lock, sign out, lost device" in docs/app.md.
    /// - Parameter onPasswordChange: Called when the new password is in force.
    /// - Returns: The new printed code to show; nil when the account had none.
    /// - Throws: ``VaultError/deletionsHeld`` before anything is changed.
    public func shutOutLostDevice(
        password: Password, newPassword: Password, onPasswordChange: @Sendable () -> Void = {}
    ) async throws(VaultError) -> RecoveryCode? {
        // The rotation needs an empty list of held deletions, and an account with items that open.
        guard try await !sync().isHeld else { throw .deletionsHeld }
        let hasCode = try await account().recovery.set
        try await changePassword(from: password, to: newPassword)
        onPasswordChange()
        try await rotateKeys(password: newPassword)
        return hasCode ? try await makeRecoveryCode(password: newPassword) : nil
    }
}
