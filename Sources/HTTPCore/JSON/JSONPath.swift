/// The path of a value in a document, such as `kdf.iterations` or `operations[3].id`.
package enum JSONPath {
    package static func member(_ name: String, of parent: String) -> String {
        parent.isEmpty ? name : "\(parent).\(name)"
    }

    package static func element(_ index: Int, of parent: String) -> String {
        "\(parent)[\(index)]"
    }

    /// Returns the path of a field inside `parent`. A field that already has the path of its parents is unchanged, and
    /// nil stands for the parent.
    package static func absolute(_ field: String?, in parent: String) -> String {
        guard let field, field != parent else { return parent }
        let isAbsolute = field.hasPrefix(parent + ".") || field.hasPrefix(parent + "[")
        return isAbsolute ? field : member(field, of: parent)
    }

    /// Returns a name from a client, shortened for a reply.
    package static func abbreviated(_ name: String) -> String {
        name.utf8.count <= 64 ? name : String(name.unicodeScalars.prefix(61)) + "..."
    }
}
