internal import Foundation

/// Files that can only be read.
struct ReadOnlyFolders: FolderSystem {
    let inner: any FolderSystem

    func openRoot(_ path: String) -> Descriptor? { inner.openRoot(path) }
    func openFolder(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFolder(name, in: folder) }
    func openFile(_ name: String, in folder: Descriptor) -> Descriptor? { inner.openFile(name, in: folder) }
    func entry(_ name: String, in folder: Descriptor) -> FolderEntry? { inner.entry(name, in: folder) }
    func status(_ descriptor: Descriptor) -> stat? { inner.status(descriptor) }
    func names(in folder: Descriptor) -> [[UInt8]]? { inner.names(in: folder) }

    func read(_ file: Descriptor, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer) -> Int? {
        inner.read(file, at: offset, into: buffer)
    }

    func createFile(_ name: String, in folder: Descriptor) -> Descriptor? { nil }
    func makeFolder(_ name: String, in folder: Descriptor) -> Bool { false }
    func removeFolder(_ name: String, in folder: Descriptor) -> Bool { false }
    func removeFile(_ name: String, in folder: Descriptor) {}
    func rename(_ name: String, in from: Descriptor, to newName: String, in to: Descriptor) -> Bool { false }
    func rename(bytes: [UInt8], in folder: Descriptor, to name: String) -> Bool { false }
    func exchange(_ name: String, in one: Descriptor, with other: String, in two: Descriptor) -> Bool { false }
    func sync(_ descriptor: Descriptor) -> Bool { false }
    func write(_ bytes: UnsafeRawBufferPointer, to file: Descriptor) -> Bool { false }
    func set(_ file: Descriptor, modified: timespec?, mode: mode_t) -> Bool { false }
}
