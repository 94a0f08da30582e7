internal import Foundation

/// The root of a folder on the disk. All entries are reached from it by their paths, without following links.
final class FolderRoot {
    private let system: any FolderSystem
    private let root: Descriptor
    private let device: dev_t
    private let corner: Descriptor
    /// Folders that have items, by their names in the form that the file system compares. They stay when they become
    /// empty.
    private var kept: Set<[UInt8]> = []

    init(_ system: any FolderSystem, _ root: Descriptor, _ device: dev_t, corner: Descriptor) {
        self.system = system
        self.root = root
        self.device = device
        self.corner = corner
    }

    /// True when the file system treats "a" and "A" as one name.
    private(set) lazy var folds: Bool = {
        if corner === root { return false }
        // A separate folder of that name may exist.
        guard let other = system.status(FolderPath.corner.uppercased(), in: root),
            let own = system.status(corner)
        else { return false }
        return (other.st_dev, other.st_ino) == (own.st_dev, own.st_ino)
    }()

    /// Returns the path's name in the form that the file system compares.
    func key(_ path: FolderPath) -> [UInt8] { Array(folds ? path.text.lowercased().utf8 : path.text.utf8) }

    func keep(_ folders: some Sequence<FolderPath>) { kept = Set(folders.map(key)) }

    private func isKept(_ folder: FolderPath) -> Bool { kept.contains(key(folder)) }

    /// Returns the source of a file, and the time of its last change.
    func source(_ path: FolderPath) -> (source: AttachmentSource, modified: Int64)? {
        guard let (folder, name) = place(path), let file = system.openFile(name, in: folder),
            let status = system.status(file), status.isFile
        else { return nil }
        let source = AttachmentSource(byteCount: Int64(status.st_size)) { [system] offset, count in
            try SecureBytes(count: count) { buffer throws(FolderError) in
                guard system.read(file, at: offset, into: buffer) == count else { throw .unusable }
            }
        }
        return (source, status.signature.modified)
    }

    /// Returns the folder of a path, and its name there.
    /// - Parameter isMade: True to create missing folders.
    func place(_ path: FolderPath, isMade: Bool = false) -> (Descriptor, String)? {
        var folder = root
        for name in path.names.dropLast() {
            if isMade, !system.makeFolder(name, in: folder) { return nil }
            guard let inner = system.openFolder(name, in: folder),
                system.status(inner)?.st_dev == device, FolderMarkerFile.marker(in: inner, system) == nil
            else { return nil }
            folder = inner
        }
        return (folder, path.names[path.names.count - 1])
    }

    /// Returns true when a path is in use, or when it cannot be determined.
    func isTaken(_ path: FolderPath) -> Bool {
        guard let (folder, name) = place(path) else { return false }
        if case .nothing? = system.entry(name, in: folder) { return false }
        return true
    }

    /// Returns true when a path is a folder, or can become one. The folders above it exist or can be created.
    func canBeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path) else { return true }
        switch system.entry(name, in: outer) {
        case nil: return false
        case .nothing: return true
        case .something:
            guard let folder = system.openFolder(name, in: outer) else { return false }
            return system.status(folder)?.st_dev == device && FolderMarkerFile.marker(in: folder, system) == nil
        }
    }

    // MARK: Folders

    /// Creates a folder, and those above it.
    func makeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path, isMade: true), system.makeFolder(name, in: outer),
            system.openFolder(name, in: outer) != nil
        else { return false }
        return system.sync(outer)
    }

    /// Removes an empty folder. One with any entry stays.
    func removeFolder(_ path: FolderPath) -> Bool {
        guard let (outer, name) = place(path), system.removeFolder(name, in: outer) else { return false }
        removeEmptyFolders(above: path)
        return true
    }

    /// Removes the folders above a path that are empty and have no item.
    func removeEmptyFolders(above path: FolderPath) {
        for folder in path.folders.reversed() {
            guard !isKept(folder), let (outer, name) = place(folder), system.removeFolder(name, in: outer)
            else { return }
        }
    }

    /// Removes folders that contain only folders.
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
}
