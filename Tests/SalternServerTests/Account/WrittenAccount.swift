import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// An account that many requests write to at once. What they need is made when one of them first asks for it.
actor WrittenAccount {
    nonisolated let app: TestApplication
    nonisolated let account: TestAccount
    private var madeItem: String?
    private var madeRotation: RotationClient?
    private var madeRestricted: TestClient?
    private var madePhone: Authenticator?
    private var madeShares: [TestShare] = []
    private var hasRecovery = false
    private var madeVault: WrittenVault?

    init(_ app: TestApplication) async throws {
        self.app = app
        account = try await app.register()
    }

    nonisolated var client: TestClient { account.client }

    /// The path of an item.
    func item() async throws -> String {
        if let madeItem { return madeItem }
        let path = try await account.createItem(RotationClient.item(Fixtures.sealed(plaintext: 4)))
        madeItem = path
        return path
    }

    /// The path of an item that was deleted.
    func deletedItem() async throws -> String {
        let path = try await account.createItem()
        _ = try await client.delete(path, ["If-Match": "*"])
        return path
    }

    /// Shares that everybody who asks gets.
    func shares() async throws -> [TestShare] {
        while madeShares.count < 3 {
            madeShares.append(try await TestShare(client, ShareFixtures.content(["maxViews": 2])))
        }
        return madeShares
    }

    /// A rotation in which everything is staged.
    func rotation() async throws -> RotationClient {
        if let madeRotation { return madeRotation }
        _ = try await item()
        var rotation = RotationClient(account)
        try await rotation.open()
        try await rotation.stageAll()
        madeRotation = rotation
        return rotation
    }

    /// A vault of the account with a manager.
    func vault() async throws -> WrittenVault {
        if let madeVault { return madeVault }
        let vault = try await WrittenVault(app, account)
        madeVault = vault
        return vault
    }

    func setRecovery() async throws {
        if hasRecovery { return }
        hasRecovery = true
        #expect(try await account.setRecovery(RecoveryTests.code).status == 200)
    }

    /// A session that a recovery has opened.
    func restricted() async throws -> TestClient {
        if let madeRestricted { return madeRestricted }
        let client = try await app.openRestrictedSession(account)
        madeRestricted = client
        return client
    }

    /// The app on a phone that has the secret of a second factor which is not confirmed yet.
    func phone() async throws -> Authenticator {
        if let madePhone { return madePhone }
        let phone = try await app.beginSecondFactor(account)
        madePhone = phone
        return phone
    }
}
