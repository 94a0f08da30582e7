/// The reason for which an operation of the local store failed.
public enum StoreError: Error, Hashable, Sendable {
    /// Another process has the store open.
    case inUse
    /// The store cannot be opened: no such folder, or no permission.
    case unusable
    /// Other users can read or write the store's file or that of the device key. It is not used.
    /// - Parameter mode: The file's permissions (`st_mode & 0o7777`).
    case exposedFile(path: String, mode: UInt32)
    /// The disk, or the store's file, is read-only. Nothing was changed.
    case readOnly
    /// The store belongs to a later version of this kit.
    case tooNew
    /// The disk is full. Nothing was changed.
    case diskFull
    /// The file is damaged, or the disk fails.
    case damaged
}

/// The vault was signed out. An emptied store accepts no data.
struct StoreClosed: Error {}
