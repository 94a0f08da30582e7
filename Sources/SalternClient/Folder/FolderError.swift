public import Foundation

/// The reason for which a folder was not synced.
public enum FolderError: Error, Sendable {
    /// The folder cannot be opened or written.
    case unusable
    /// The folder contains the vault's own store, is it, or is in it.
    case holdsStore
    /// The folder is a copy of the one at this path, which still exists and has the same marker.
    case copy(of: String)
    /// The folder is an older copy of one that was synced since, or was restored from a backup. Its missing files would
    /// be deleted on other devices. ``FolderSettings/allowsDeletions`` makes it a new folder, which deletes nothing.
    case outdated
    /// The folder was synced with this collection, which is not ``FolderSettings/collection``.
    case otherCollection(String)
    /// The folder is synced with another account.
    case otherAccount
    /// Another folder of this device, last at this path, is synced with the collection. Both folders would get all
    /// files of both. ``FolderSettings/allowsSecondFolder`` allows it.
    case secondFolder(beside: String)
    /// The folder is in this one, which is synced. Each would send the other's files.
    case nested(in: String)
    /// A call of the vault failed.
    case vault(VaultError)
    /// The task was cancelled. Actions up to then are complete.
    case cancelled

    /// The code of the error. It is stable, for scripts.
    public var code: String {
        switch self {
        case .unusable: "unusable"
        case .holdsStore: "holds_store"
        case .copy: "copy"
        case .outdated: "outdated"
        case .otherCollection: "other_collection"
        case .otherAccount: "other_account"
        case .secondFolder: "second_folder"
        case .nested: "nested"
        case .vault: "vault"
        case .cancelled: "cancelled"
        }
    }
}

extension FolderError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .unusable: "The folder cannot be opened or written."
        case .holdsStore: "The folder contains the app's own files, or is inside them."
        case .copy(let other): "The folder is a copy of “\(other)”, which still exists."
        case .outdated: "The folder is an older copy of a synced folder."
        case .otherCollection(let name): "The folder is in sync with the collection “\(name)”."
        case .otherAccount: "The folder is in sync with another account or shared vault."
        case .secondFolder(let other): "The folder “\(other)” is already in sync with the same files."
        case .nested(let outer): "The folder is in “\(outer)”, which is in sync."
        case .vault(let error): error.errorDescription
        case .cancelled: "The call was cancelled."
        }
    }
}
