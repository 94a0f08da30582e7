/// Where a value is in a document, as people write it: `kdf.iterations`, `operations[3].id`.
package enum JSONPath {
    package static func member(_ name: String, of parent: String) -> String {
        parent.isEmpty ? name : "\(parent).\(name)"
    }

    package static func element(_ index: Int, of parent: String) -> String {
        "\(parent)[\(index)]"
    }

    /// The path of a field inside of `parent`; one that names its parents already, and none, stand for themselves.
    package static func absolute(_ field: String?, in parent: String) -> String {
        guard let field, field != parent else { return parent }
        let isAbsolute = field.hasPrefix(parent + ".") || field.hasPrefix(parent + "[")
        return isAbsolute ? field : member(field, of: parent)
    }

    /// A name that a client chose, short enough to be sent back.
    package static func abbreviated(_ name: String) -> String {
        name.utf8.count <= 64 ? name : String(name.unicodeScalars.prefix(61)) + "..."
    }
}
