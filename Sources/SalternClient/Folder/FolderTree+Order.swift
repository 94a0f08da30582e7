internal import Foundation

/// What is tidied up: empty folders, the trash, and what a process that was killed has left.
extension FolderTree {
    func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard let (outer, name) = place(folder), system.removeFolder(name, in: outer) else { return }
        }
    }

    /// Removes folders in which there are only folders.
    func removeEmptyFolders(in path: FolderPath) {
        guard let (outer, name) = place(path), let folder = system.openFolder(name, in: outer) else { return }
        for inner in system.names(in: folder) ?? [] {
            guard let text = String(validating: inner, as: UTF8.self),
                let path = try? FolderPath(path.text + "/" + text)
            else { continue }
            if system.status(text, in: folder)?.isFolder == true { removeEmptyFolders(in: path) }
        }
        _ = system.removeFolder(name, in: outer)
    }

    private static let trashDays = 30

    static func trashName(_ path: FolderPath) -> String {
        let day = Int(Date().timeIntervalSince1970) / 86_400
        return "\(day)-\(ItemID.random())-\(path.names[path.names.count - 1].shortened(toBytes: 128))"
    }

    /// What a process that was killed has left: a file that was on its way arrives, half a file is nothing, what was
    /// displaced is kept in the trash.
    func tidy() {
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) })
        where name.hasPrefix(Self.movePrefix) {
            let id = String(name.dropFirst(Self.movePrefix.count))
            _ = endMove(id, places(id))
        }
        for name in (system.names(in: parts) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            if name.hasPrefix("swap-"), let path = try? FolderPath(name) {
                _ = system.rename(name, in: parts, to: Self.trashName(path), in: trash)
            } else {
                system.removeFile(name, in: parts)
            }
        }
        let today = Int(Date().timeIntervalSince1970) / 86_400
        for name in (system.names(in: trash) ?? []).map({ String(decoding: $0, as: UTF8.self) }) {
            guard let day = name.split(separator: "-").first.flatMap({ Int($0) }), day + Self.trashDays < today else {
                continue
            }
            system.removeFile(name, in: trash)
        }
    }
}
