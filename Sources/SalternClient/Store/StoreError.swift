/// Why the local store did not do what it should.
public enum StoreError: Error, Hashable, Sendable {
    /// Another process has it open.
    case inUse
    /// It cannot be opened: no such folder, or no permission.
    case unusable
    /// Others can read or write the store's file or that of the device key. It is not used.
    /// - Parameter mode: The file's permissions (`st_mode & 0o7777`).
    case exposedFile(path: String, mode: UInt32)
    /// The disk, or the store's file, can only be read. Nothing was changed.
    case readOnly
    /// It belongs to a later version of this kit.
    case tooNew
    /// The disk is full. Nothing was changed.
    case diskFull
    /// The file is damaged, or the disk fails.
    case damaged
}

/// The vault was signed out meanwhile: nothing is written into a store that was emptied.
struct StoreClosed: Error {}
