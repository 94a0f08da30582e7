internal import Foundation

extension FolderTree {
    /// Examines only some entries. One that no longer exists is in no set of the result.
    /// - Parameter entries: The bytes of their paths on the disk.
    func examine(_ entries: Set<[UInt8]>, into report: inout FolderReport) -> Scan {
        var scan = Scan()
        rules.reset()
        let now = timespecNow()
        for entry in entries.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            if Task.isCancelled {
                scan.isComplete = false
                break
            }
            // The content of an examined folder is examined with it.
            if Self.isInside(entry, entries) { continue }
            examine(entry, now, &scan, &report)
        }
        return scan
    }

    private static func isInside(_ entry: [UInt8], _ entries: Set<[UInt8]>) -> Bool {
        entry.lastIndex(of: UInt8(ascii: "/")).map { FolderFocus.covers(entries, Array(entry[..<$0])) } ?? false
    }

    private func examine(_ entry: [UInt8], _ now: Int64, _ scan: inout Scan, _ report: inout FolderReport) {
        let names = entry.split(separator: UInt8(ascii: "/")).map { Array($0) }
        guard let last = names.last, names[0] != Array(FolderPath.corner.utf8) else { return }
        var folder = root
        var prefix = ""
        for bytes in names.dropLast() {
            // If a folder on the path cannot be passed, the whole folder is examined.
            guard let name = String(validating: bytes, as: UTF8.self), let path = try? FolderPath(prefix + name),
                Array(path.text.utf8) == Array(prefix.utf8) + bytes,
                let inner = system.openFolder(name, in: folder), system.status(inner)?.st_dev == device,
                Self.marker(in: inner, system) == nil
            else {
                if isLeftOut(bytes, in: Self.names(of: prefix)) { return }
                return visit(named: bytes, folder, prefix, now, &scan, &report)
            }
            folder = inner
            prefix = path.text + "/"
        }
        if isLeftOut(last, in: Self.names(of: prefix)) { return }
        visit(named: last, folder, prefix, now, &scan, &report)
    }

    /// Examines an entry that may not exist.
    private func visit(
        named bytes: [UInt8], _ folder: Descriptor, _ prefix: String, _ now: Int64, _ scan: inout Scan,
        _ report: inout FolderReport
    ) {
        let path = String(validating: bytes, as: UTF8.self).flatMap { try? FolderPath(prefix + $0) }
        // A name in another form would be renamed to NFC, which gives no information when the entry does not exist.
        let isUsual = path.map { Array($0.text.utf8) == Array(prefix.utf8) + bytes } ?? false
        if !isUsual, let names = system.names(in: folder), !names.contains(bytes) {
            return noteIfEmpty(folder, prefix, &scan)
        }
        visit(bytes, folder, prefix, now, &scan, &report)
        if let path, scan.files[path] != nil || scan.folders.contains(path) { return }
        noteIfEmpty(folder, prefix, &scan)
    }

    /// Records the folder of a possibly missing entry if it is empty, because it is in no other entry. It lists each
    /// folder once.
    private func noteIfEmpty(_ folder: Descriptor, _ prefix: String, _ scan: inout Scan) {
        guard let path = FolderPath(folderTitle: prefix), scan.listedFolders.insert(path).inserted,
            system.names(in: folder)?.isEmpty == true
        else { return }
        scan.folders.insert(path)
        noteEmpty(path, &scan)
    }
}
