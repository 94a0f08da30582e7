/// The patterns that apply in one folder: those of its ignore files and of the folders above it.
struct IgnoreScope: Sendable {
    private struct Level: Sendable {
        /// The number of names in the folder's path.
        let depth: Int
        /// The ignore file and its conflict copies.
        let files: [IgnoreFile]
    }

    private var levels: [Level] = []

    /// True when nothing is ignored.
    var isEmpty: Bool { levels.isEmpty }

    /// Adds the ignore files of an inner folder.
    func adding(_ files: [IgnoreFile], depth: Int) -> IgnoreScope {
        if files.isEmpty { return self }
        var scope = self
        scope.levels.append(Level(depth: depth, files: files))
        return scope
    }

    /// Returns true when an entry of the folder is ignored. The innermost folder with a matching pattern decides. An
    /// ignore file is never ignored.
    /// - Parameter path: The names from the root on, in NFC if they are UTF-8.
    func ignores(_ path: [[UInt8]], isFolder: Bool) -> Bool {
        guard !levels.isEmpty, let last = path.last else { return false }
        if !isFolder, IgnoreFile.isName(String(decoding: last, as: UTF8.self)) { return false }
        for level in levels.reversed() {
            let decisions = level.files.compactMap { $0.decide(path[level.depth...], isFolder: isFolder) }
            if decisions.contains(true) { return true }
            if !decisions.isEmpty { return false }
        }
        return false
    }

    /// Returns true when every possible entry of a folder is ignored, as with the patterns `build/*` and `build/**`.
    /// Then the folder is ignored, too, as long as it contains nothing that is kept.
    /// - Parameter path: The names from the root on, in NFC if they are UTF-8.
    func ignoresAll(in path: [[UInt8]]) -> Bool {
        guard !levels.isEmpty else { return false }
        return Self.anyNames.allSatisfy { name in
            [true, false].allSatisfy { ignores(path + [Array(name.utf8)], isFolder: $0) }
        }
    }

    /// Names that represent all others. No pattern matches only them, because U+FFFF is not a character.
    private static let anyNames = ["\u{ffff}", ".\u{ffff}"]
}
