internal import Foundation

extension Vault {
    /// Returns the shared vaults on this device, by name. ``sync()`` refreshes them.
    ///
    /// ```swift
    /// for shared in try await vault.sharedVaults() { print(shared.name, shared.members.count) }
    /// ```
    public func sharedVaults() throws(VaultError) -> [SharedVault] { try sharedVaultService.snapshots(self) }

    /// Returns a shared vault; nil when this device does not have it.
    ///
    /// ```swift
    /// let problems = try await vault.sharedVault(id)?.problems ?? []
    /// ```
    public func sharedVault(_ id: SharedVaultID) throws(VaultError) -> SharedVault? {
        try sharedVaultService.snapshot(id, self)
    }

    /// Returns the shared vault with an id, or with a name.
    ///
    /// ```swift
    /// let family = try await vault.sharedVault(named: "Family")
    /// ```
    /// - Throws: ``SharedVaultError/unknownVault`` or ``SharedVaultError/ambiguousName``.
    public func sharedVault(named text: String) throws(VaultError) -> SharedVault {
        let vaults = try sharedVaults()
        if let id = SharedVaultID(text), let vault = vaults.first(where: { $0.id == id }) { return vault }
        let named = vaults.filter { $0.name == text }
        guard named.count <= 1 else { throw .shared(.ambiguousName) }
        guard let vault = named.first else { throw .shared(.unknownVault) }
        return vault
    }

    /// Returns the ids of vaults whose members, invitations or findings have changed, from the moment of the call on.
    ///
    /// ```swift
    /// for await ids in vault.sharedVaultChanges() where ids.contains(family.id) { reload() }
    /// ```
    public nonisolated func sharedVaultChanges() -> AsyncStream<Set<SharedVaultID>> { observers.vaults.add() }

    /// Founds a shared vault, which counts against this account's plan.
    ///
    /// Example: ``SharedVault``.
    /// - Parameter person: The name that the members see.
    public func makeShared(name: String, as person: String) async throws(VaultError) -> SharedVault {
        try present(await sharedVaultService.founding.found(name: name, as: person))
    }

    /// Fetches and verifies an invitation, without a session.
    ///
    /// ```swift
    /// let preview = try await Vault.preview(link, code: typed, settings)
    /// print(preview.vaultName, preview.inviterName, preview.role)
    /// ```
    public static func preview(
        _ link: String, code: String?, _ settings: VaultSettings
    ) async throws(VaultError) -> InvitationPreview {
        try await VaultInviting.preview(link, code: code, SalternAPI(settings.transport), settings)
    }

    /// Fetches and verifies an invitation.
    ///
    /// ```swift
    /// let preview = try await vault.preview(link, code: typed)
    /// ```
    public func preview(_ link: String, code: String?) async throws(VaultError) -> InvitationPreview {
        try await VaultInviting.preview(link, code: code, session.api, settings)
    }

    /// Joins a shared vault. A repeated call continues an interrupted one.
    ///
    /// ```swift
    /// let family = try await vault.join(link, code: typed, as: "Bob")
    /// ```
    /// - Parameter person: The name that the members see.
    public func join(_ link: String, code: String?, as person: String) async throws(VaultError) -> SharedVault {
        try present(await sharedVaultService.inviting.join(link, code: code, as: person))
    }

    /// Brings the logs and the members of all shared vaults to the server's state. ``sync()`` includes it.
    ///
    /// ```swift
    /// try await vault.refreshSharedVaults()
    /// ```
    public func refreshSharedVaults() async throws(VaultError) {
        _ = try await sharedVaultService.refresh()
    }

    // MARK: Operations of a shared vault

    func changing(
        _ id: SharedVaultID, _ body: (MembershipChanges) async throws(VaultError) -> Void
    ) async throws(VaultError) {
        try await body(MembershipChanges(service: sharedVaultService, id: id))
    }

    func invite(
        _ id: SharedVaultID, _ role: SharedRole, _ uses: Int, _ expires: Duration, _ code: InvitationCodeChoice,
        _ label: String?, _ base: URL
    ) async throws(VaultError) -> NewInvitation {
        try await sharedVaultService.inviting.invite(
            id, role: role, uses: uses, expires: expires, code, label: label, base: base)
    }

    func forgetShared(_ id: SharedVaultID) throws(VaultError) {
        if let state = try sharedVaultService.state(id), state.role != nil { throw .shared(.notPermitted) }
        try sharedVaultService.forget(id)
    }

    private func present(_ id: SharedVaultID) throws(VaultError) -> SharedVault {
        guard let vault = try sharedVault(id) else { throw .shared(.unknownVault) }
        return vault
    }
}
