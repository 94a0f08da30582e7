import Foundation
import SalternTesting
import Testing

@testable import SalternClient

/// A device with its store and a folder on a disk, and a server in memory, whose process can end at any call that writes.
final class MortalDevice {
    private let name: String
    private let store: TemporaryDirectory
    private let folder: TemporaryDirectory
    let link: LossyTransport
    private let settings: VaultSettings
    private(set) var life = StoreLife()
    private var current: Vault?

    /// The kinds of end of a process.
    static let ends: [WriteFault] = [.killBefore, .killWithin, .killAfter]

    init(
        _ name: String, _ server: MemoryServer, isFirst: Bool, _ change: (inout VaultSettings) -> Void = { _ in }
    ) async throws {
        self.name = name
        store = try TemporaryDirectory(.memory)
        folder = try TemporaryDirectory(.memory)
        link = LossyTransport(server)
        var settings = VaultSettings.forTests(folder: store.path, link, name: name)
        change(&settings)
        self.settings = settings
        try beginLife()
        let password = Password("password")
        current =
            isFirst
            ? try await Vault.signUp(settings, userid: "ada@example.org", password: password)
            : try await Vault.logIn(settings, userid: "ada@example.org", password: password)
    }

    deinit { StoreCalls.concern(nil, folder: store.path) }

    private func beginLife() throws {
        life = StoreLife()
        guard StoreCalls.concern(life, folder: store.path) else { throw StoreError.unusable }
        link.belong(to: life)
    }

    /// Ends the process, if that has not happened already, and starts another one.
    func startAgain() async throws {
        current = nil
        try beginLife()
        current = try await Vault.resume(settings)
    }

    func vault() throws -> Vault { try #require(current) }

    func storeFiles() throws -> StoreFiles { try StoreFiles(folder: store.path, key: settings.deviceKey.load()) }

    /// Does something, unless the process ends at a call.
    /// - Returns: Whether it was done, or at least nobody has heard otherwise.
    func attempt(_ end: WriteFault, at call: Int, _ body: (MortalDevice) async throws -> Void) async throws -> Bool {
        life.arm(end, at: call)
        do { try await body(self) } catch  where life.hasFailed { return false }
        return true
    }

    // MARK: Items

    func text(_ id: ItemID) async throws -> String? {
        try await vault().collection("notes", of: Note.self)[id]?.text
    }

    func put(_ text: String, _ id: ItemID) async throws {
        try await vault().collection("notes", of: Note.self).put(Note(text: text), id)
    }

    // MARK: Files

    func syncFolder() async throws {
        let agreeing = try FolderDevice.syncs(vault(), folder.path, name, MortalFolders(life: life)).1
        _ = try await agreeing.run()
    }

    func write(_ text: String, to path: String) throws {
        try Data(text.utf8).write(to: URL(filePath: folder.path + "/" + path))
    }

    /// All files by path, without the kit's own corner.
    func files() throws -> [String: String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return try names.filter { $0 != FolderPath.corner }.reduce(into: [:]) { files, name in
            files[name] = String(decoding: try Data(contentsOf: URL(filePath: folder.path + "/" + name)), as: UTF8.self)
        }
    }
}
