internal import Foundation

extension FolderTree {
    /// The names in the path of a folder.
    /// - Parameter prefix: The path with a slash at the end; empty for the root.
    static func names(of prefix: String) -> ArraySlice<String> {
        prefix.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }[...]
    }

    /// Returns true when an entry is ignored, and records it. Its name may be one that cannot be synced.
    func isIgnored(_ bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ scan: inout Scan) -> Bool {
        let outer = Self.names(of: prefix)
        guard case .active(let scope) = rules.state(in: outer), !scope.isEmpty else { return false }
        let text = String(validating: bytes, as: UTF8.self)
        let name = text.map { Array($0.precomposedStringWithCanonicalMapping.utf8) } ?? bytes
        // An entry whose name is not UTF-8 counts as a file.
        let isFolder = text.map { system.status($0, in: folder)?.isFolder == true } ?? false
        guard scope.ignores(outer.map { Array($0.utf8) } + [name], isFolder: isFolder) else { return false }
        scan.ignored.insert(Array((prefix + VisibleName.text(name) + (isFolder ? "/" : "")).utf8))
        if let text, let path = try? FolderPath(prefix + text) { scan.skipped.insert(path) }
        return true
    }

    /// Records an empty folder. Patterns that exclude everything in it exclude the folder, too.
    func noteEmpty(_ path: FolderPath, _ scan: inout Scan) {
        if rules.fate(ofFolder: path) == .ignored {
            scan.ignored.insert(Array(path.folderTitle.utf8))
        } else {
            scan.emptyFolders.insert(path)
        }
    }

    /// Returns true when nothing in the entry's folder is examined, because it is ignored or an ignore file cannot be
    /// applied.
    func isLeftOut(_ name: [UInt8], in folder: ArraySlice<String>) -> Bool {
        switch rules.state(in: folder) {
        case .active: false
        case .ignored: true
        case .broken(let depth):
            depth != folder.count || !IgnoreFile.isName(String(decoding: name, as: UTF8.self))
        }
    }
}
