import Foundation
import SalternTesting
import Synchronization

@testable import SalternClient

/// A folder as a person sees it.
protocol PersonsFolder {
    var name: String { get }
    /// All files by path, without the kit's own corner.
    func files() -> [String: String]
    /// Whether a file or a folder is there.
    func has(_ path: String) -> Bool
    /// - Returns: false when something is in the way.
    func put(_ text: String, at path: String) -> Bool
    func drop(_ path: String) -> Bool
    func move(_ path: String, to other: String) -> Bool
    func clearEmptyFolders()
    /// Makes an empty folder.
    func makeFolder(_ path: String) -> Bool
    /// Removes a folder in which nothing is.
    func removeFolder(_ path: String) -> Bool
    /// The paths of all folders.
    func folders() -> Set<String>
}

/// What a person does with files.
enum FolderEdit: Sendable {
    case create, createLong, replace, replaceLong, delete, rename
    /// What was deleted is wanted again.
    case restore
    case copy
    /// The name in upper or in lower case.
    case respell
    /// The file goes into a folder that has its name.
    case becomeFolder
    /// The file takes the name of its folder, in which nothing else stays.
    case becomeFile
    case makeFolder, removeFolder
    /// Other patterns are in the ignore file.
    case ignore

    static func random(using random: inout some RandomNumberGenerator, hasLong: Bool) -> FolderEdit {
        switch Int.random(in: 0..<100, using: &random) {
        case 90..<93: .makeFolder
        case 93..<95: .removeFolder
        case 95..<97: .ignore
        case 0: hasLong ? .createLong : .create
        case 1: hasLong ? .replaceLong : .replace
        case 2..<32: .create
        case 32..<57: .replace
        case 57..<68: .delete
        case 68..<78: .rename
        case 78..<86: .restore
        case 86..<88: .copy
        case 89..<90: .respell
        case 88..<89: .respell
        case 97..<99: .becomeFolder
        default: .becomeFile
        }
    }
}

/// What a person wrote and has not replaced or deleted where they could see it, and how they do it.
final class WrittenFiles: Sendable {
    private struct State {
        var leaves: Set<String> = []
        var count = 0
        /// Somebody who saw it has written another in its place.
        var replaced: Set<String> = []
        var deleted: [String] = []
        var trace: [String] = []
    }

    private let state = Mutex(State())

    var leaves: Set<String> { state.withLock { $0.leaves } }

    /// What was done, for whoever looks into a failure.
    var trace: String { state.withLock { $0.trace.joined(separator: "\n") } }

    func note(_ folder: some PersonsFolder, _ what: String) {
        let files = folder.files().sorted { $0.key < $1.key }.map { "\($0.key): \($0.value.prefix(20))" }
        state.withLock { $0.trace.append("\(folder.name) \(what) -> \(files.joined(separator: ", "))") }
    }

    /// One edit: what cannot be done, because of something in the way, is not done.
    func edit(_ folder: some PersonsFolder, _ names: [String], _ edit: FolderEdit, _ seed: UInt64) {
        defer { note(folder, "\(edit)") }
        var random = SeededGenerator(seed: seed)
        let present = folder.files().filter { !$0.key.contains(IgnoreFile.name) }.sorted { $0.key < $1.key }
        let name = names.randomElement(using: &random) ?? "a"
        let seen = present.randomElement(using: &random)
        switch edit {
        case .create, .createLong: create(folder, name, isLong: edit == .createLong)
        case .restore: restore(folder, name)
        case .makeFolder: if !folder.has(name) { _ = folder.makeFolder(name) }
        case .removeFolder:
            if let path = folder.folders().sorted().randomElement(using: &random) { _ = folder.removeFolder(path) }
        case .ignore:
            let patterns = ["", "a", "b.txt\nA/\n", "c/*\n!c/d\n", "[broken", "*\n!c\n"]
            _ = folder.put(patterns.randomElement(using: &random) ?? "", at: IgnoreFile.name)
        default: if let seen { change(folder, seen.key, seen.value, edit, name) }
        }
    }

    private func change(
        _ folder: some PersonsFolder, _ path: String, _ seen: String, _ edit: FolderEdit, _ name: String
    ) {
        switch edit {
        case .replace, .replaceLong:
            let text = version(isLong: edit == .replaceLong)
            if folder.put(text, at: path) { replace(seen, text) }
        case .delete: delete(folder, path, seen)
        case .rename: if !folder.has(name) { _ = folder.move(path, to: name) }
        case .copy: if !folder.has(name) { _ = folder.put(seen, at: name) }
        case .respell: respell(folder, path)
        case .becomeFolder: relocate(folder, path, to: path + "/" + Self.lastName(path), seen)
        case .becomeFile: becomeFile(folder, path, seen)
        case .create, .createLong, .restore, .makeFolder, .removeFolder, .ignore: break
        }
    }

    /// From now on nothing is ignored.
    func stopIgnoring(_ folder: some PersonsFolder) {
        for path in folder.files().keys where path.contains(IgnoreFile.name) { _ = folder.drop(path) }
        note(folder, "ignores nothing")
    }

    private static func lastName(_ path: String) -> String {
        path.split(separator: "/").last.map { String($0) } ?? path
    }

    // MARK: Edits

    private func create(_ folder: some PersonsFolder, _ name: String, isLong: Bool) {
        if folder.has(name) { return }
        let text = version(isLong: isLong)
        if folder.put(text, at: name) { state.withLock { _ = $0.leaves.insert(text) } }
    }

    private func restore(_ folder: some PersonsFolder, _ name: String) {
        guard let text = state.withLock({ $0.deleted.popLast() }), !folder.has(name), folder.put(text, at: name) else {
            return
        }
        // In a folder that still knows it under another name it is that file, renamed: what replaced it comes over it.
        state.withLock { if !$0.replaced.contains(text) { $0.leaves.insert(text) } }
    }

    private func respell(_ folder: some PersonsFolder, _ path: String) {
        let name = Self.lastName(path)
        let other = name == name.uppercased() ? name.lowercased() : name.uppercased()
        if other != name { _ = folder.move(path, to: path.dropLast(name.count) + other) }
    }

    private func becomeFile(_ folder: some PersonsFolder, _ path: String, _ seen: String) {
        let outer = path.split(separator: "/").dropLast().joined(separator: "/")
        if outer.isEmpty { return }
        for (other, text) in folder.files() where other != path && other.hasPrefix(outer + "/") {
            delete(folder, other, text)
        }
        relocate(folder, path, to: outer, seen)
    }

    /// By way of nothing: where it goes something of its own may be.
    private func relocate(_ folder: some PersonsFolder, _ path: String, to other: String, _ text: String) {
        guard folder.drop(path) else { return }
        folder.clearEmptyFolders()
        if folder.has(other) || !folder.put(text, at: other) { _ = folder.put(text, at: path) }
    }

    private func delete(_ folder: some PersonsFolder, _ path: String, _ seen: String) {
        guard folder.drop(path) else { return }
        state.withLock { state in
            state.leaves.remove(seen)
            state.deleted.append(seen)
        }
    }

    // MARK: Versions

    private func version(isLong: Bool) -> String {
        state.withLock { state in
            state.count += 1
            return "version \(state.count)" + (isLong ? String(repeating: ".", count: 600_000) : "")
        }
    }

    private func replace(_ seen: String, _ text: String) {
        state.withLock { state in
            state.leaves.remove(seen)
            state.replaced.insert(seen)
            state.leaves.insert(text)
        }
    }
}
