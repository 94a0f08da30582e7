public import Foundation

extension FolderError: LocalizedError {
    public var errorDescription: String? {
        switch self {
        case .unusable: "The folder cannot be opened or written."
        case .holdsStore: "The folder contains the app's own files, or is inside them."
        case .copy(let other): "The folder is a copy of “\(other)”, which still exists."
        case .outdated: "The folder is an older copy of a synced folder."
        case .otherCollection(let name): "The folder is in sync with the collection “\(name)”."
        case .otherAccount: "The folder is in sync with another account."
        case .secondFolder(let other): "The folder “\(other)” is already in sync with the same files."
        case .nested(let outer): "The folder is in “\(outer)”, which is in sync."
        case .vault(let error): error.errorDescription
        case .cancelled: "The call was cancelled."
        }
    }
}
