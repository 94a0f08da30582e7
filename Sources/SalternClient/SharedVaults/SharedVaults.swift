/// The shared vaults of an account: ``Vault/shared``.
///
/// ```swift
/// let family = try await vault.shared.make(name: "Family", as: "Ada")
/// for shared in try await vault.shared.all() { print(shared.name, shared.members.count) }
/// ```
public struct SharedVaults: Sendable {
    let vault: Vault

    // MARK: Listing

    /// Returns the shared vaults on this device, by name. ``Vault/sync()`` refreshes them.
    public func all() async throws(VaultError) -> [SharedVault] {
        try await withService { service throws(VaultError) in try service.snapshots(vault) }
    }

    /// Returns a shared vault; nil when this device does not have it.
    public func vault(_ id: SharedVaultID) async throws(VaultError) -> SharedVault? {
        try await withService { service throws(VaultError) in try service.snapshot(id, vault) }
    }

    /// Returns the shared vault with an id, or with a name.
    /// - Throws: ``SharedVaultError/unknownVault`` or ``SharedVaultError/ambiguousName``.
    public func vault(named text: String) async throws(VaultError) -> SharedVault {
        let vaults = try await all()
        if let id = SharedVaultID(text), let vault = vaults.first(where: { $0.id == id }) { return vault }
        let named = vaults.filter { $0.name == text }
        guard named.count <= 1 else { throw .shared(.ambiguousName) }
        guard let vault = named.first else { throw .shared(.unknownVault) }
        return vault
    }

    /// Returns the ids of vaults whose members, invitations or findings have changed, from the moment of the call on.
    public func changes() -> AsyncStream<Set<SharedVaultID>> { vault.observers.vaults.add() }

    /// Brings the logs and the members of all shared vaults to the server's state. ``Vault/sync()`` includes it.
    public func refresh() async throws(VaultError) {
        try await withService { service throws(VaultError) in _ = try await service.refresh() }
    }

    // MARK: Founding and joining

    /// Founds a shared vault, which counts against this account's plan.
    /// - Parameter person: The name that the members see.
    public func make(name: String, as person: String) async throws(VaultError) -> SharedVault {
        try await present(
            try await withService { service throws(VaultError) in
                try await service.founding.found(name: name, as: person)
            })
    }

    /// Fetches and verifies an invitation, without a session.
    ///
    /// ```swift
    /// let preview = try await SharedVaults.preview(text, code: typed, settings)
    /// print(preview.vaultName, preview.inviterName, preview.role)
    /// ```
    public static func preview(
        _ link: String, code: String?, _ settings: VaultSettings
    ) async throws(VaultError) -> InvitationPreview {
        try await VaultInviting.preview(link, code: code, SalternAPI(settings.transport), settings)
    }

    /// Fetches and verifies an invitation.
    public func preview(_ link: String, code: String?) async throws(VaultError) -> InvitationPreview {
        try await Self.preview(link, code: code, vault.settings)
    }

    /// Joins a shared vault. A repeated call continues an interrupted one.
    /// - Parameter person: The name that the members see.
    public func join(_ link: String, code: String?, as person: String) async throws(VaultError) -> SharedVault {
        try await present(
            try await withService { service throws(VaultError) in
                let id = try await service.inviting.join(link, code: code, as: person)
                // The account's other devices need the key. The next sync sends it otherwise.
                try? await service.sendAccountItems()
                return id
            })
    }

    private func present(_ id: SharedVaultID) async throws(VaultError) -> SharedVault {
        guard let vault = try await vault(id) else { throw .shared(.unknownVault) }
        return vault
    }

    /// Calls `body` on the actor of the vault.
    func withService<Result: Sendable>(
        _ body: @Sendable (SharedVaultService) async throws(VaultError) -> Result
    ) async throws(VaultError) -> Result {
        try await vault.use(.account) { parts throws(VaultError) in
            guard let service = parts.scope.session.memberships as? SharedVaultService else { throw .locked }
            return try await body(service)
        }
    }
}
