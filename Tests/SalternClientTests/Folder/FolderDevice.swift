import CPlatform
import Foundation
import SalternTesting

@testable import SalternClient

/// A device with a folder that is kept in sync.
struct FolderDevice {
    let device: Device
    let vault: Vault
    let folder: TemporaryDirectory
    let sync: FolderSync
    /// The same, by somebody who has agreed to deletions.
    let agreeing: FolderSync

    init(
        _ name: String, _ server: LiveServer, userid: String = "ada@example.org", isFirst: Bool,
        _ change: (inout VaultSettings) -> Void = { _ in }
    ) async throws {
        var device = try Device(name, server)
        change(&device.settings)
        self.device = device
        let password = Password("password")
        vault =
            isFirst
            ? try await Vault.signUp(device.settings, userid: userid, password: password)
            : try await Vault.logIn(device.settings, userid: userid, password: password)
        folder = try TemporaryDirectory(.memory)
        (sync, agreeing) = Self.syncs(vault, folder.path, name)
    }

    static func syncs(
        _ vault: Vault, _ folder: String, _ name: String, _ system: any FolderSystem = DiskFolders()
    ) -> (FolderSync, FolderSync) {
        var settings = FolderSettings(deviceName: name)
        let root = URL(filePath: folder).standardizedFileURL.resolvingSymlinksInPath().path
        let sync = FolderSync(OwnedItems(vault), root, settings, system)
        settings.allowsDeletions = true
        return (sync, FolderSync(OwnedItems(vault), root, settings, system))
    }

    /// Runs rounds that agree to deletions until the server has everything: a server under load may refuse a request (503).
    /// - Throws: When ten rounds were not enough.
    func send() async throws {
        for _ in 0..<10 {
            let report = try await agreeing.run()
            if !report.isOffline && report.unsent == 0 { return }
        }
        throw VaultError.unavailable(.transport(.timedOut))
    }

    func url(_ path: String) -> URL { URL(filePath: folder.path + "/" + path) }

    func write(_ text: String, to path: String) throws {
        try FileManager.default.createDirectory(
            at: url(path).deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(text.utf8).write(to: url(path))
    }

    func read(_ path: String) -> String? {
        (try? Data(contentsOf: url(path))).map { String(decoding: $0, as: UTF8.self) }
    }

    func remove(_ path: String) throws { try FileManager.default.removeItem(at: url(path)) }

    func rename(_ path: String, _ other: String) throws {
        try FileManager.default.createDirectory(
            at: url(other).deletingLastPathComponent(), withIntermediateDirectories: true)
        // Foundation's own way compares the names case by case, and fails an assertion at some of them.
        // 1: nothing is written over.
        guard saltern_renameat2(AT_FDCWD, url(path).path, AT_FDCWD, url(other).path, 1) == 0 else {
            throw CocoaError(.fileWriteUnknown)
        }
    }

    /// All files by path, without the kit's own corner.
    func files() -> [String: String] {
        let names = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return names.reduce(into: [:]) { files, name in
            var isFolder: ObjCBool = false
            guard name != ".saltern", !name.hasPrefix(".saltern/"),
                FileManager.default.fileExists(atPath: folder.path + "/" + name, isDirectory: &isFolder),
                !isFolder.boolValue
            else { return }
            files[name] = read(name)
        }
    }

    /// What is in the folder's trash.
    func trash() -> Set<String> {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path + "/.saltern/trash")) ?? []
        return Set(names.compactMap { read(".saltern/trash/" + $0) })
    }

    func item(_ path: String) async throws -> ItemID? {
        for id in try await vault.ids("files") where try await vault.item(id)?.title == path { return id }
        return nil
    }
}

extension FolderDevice: PersonsFolder {
    var name: String { device.name }

    func has(_ path: String) -> Bool { FileManager.default.fileExists(atPath: url(path).path) }

    func put(_ text: String, at path: String) -> Bool { (try? write(text, to: path)) != nil }

    func drop(_ path: String) -> Bool { (try? remove(path)) != nil }

    func move(_ path: String, to other: String) -> Bool { (try? rename(path, other)) != nil }

    func makeFolder(_ path: String) -> Bool { mkdir(url(path).path, 0o700) == 0 }

    func removeFolder(_ path: String) -> Bool { rmdir(url(path).path) == 0 }

    func folders() -> Set<String> {
        let names = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        return Set(
            names.filter { name in
                var isFolder: ObjCBool = false
                return name != ".saltern" && !name.hasPrefix(".saltern/")
                    && FileManager.default.fileExists(atPath: url(name).path, isDirectory: &isFolder)
                    && isFolder.boolValue
            })
    }

    func clearEmptyFolders() {
        let names = FileManager.default.enumerator(atPath: folder.path)?.compactMap { $0 as? String } ?? []
        for name in names.sorted(by: >) where name != ".saltern" && !name.hasPrefix(".saltern/") {
            // Only what is empty goes.
            _ = rmdir(url(name).path)
        }
    }
}
