package penstock;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.collection.Seq;

/**
 * Trees of Catalyst as JSON: each call from Python takes time, and a small query has some hundred nodes.
 *
 * <p>A tree is an array of nodes, roots first; a node refers to another one by its index, as {"node": 7}. A node has its
 * class, its line and column in the text it was parsed from, and fields.
 */
public final class Trees {
    private static final String TYPES = "org.apache.spark.sql.types.";

    private final List nodes = new ArrayList();
    private final ArrayNode found = PlannedSource.JSON.createArrayNode();

    private Trees() {}

    /**
     * A parsed tree; the fields of a node are all arguments of its constructor. They are searched, not its `children`: some
     * nodes keep expressions where no tree walk of Spark's shows them, such as the right-hand sides of `|> SET`.
     */
    public static String parsed(TreeNode root) {
        Trees trees = new Trees();
        trees.nodes.add(root);
        for (int i = 0; i < trees.nodes.size(); i++) {
            TreeNode node = (TreeNode) trees.nodes.get(i);
            trees.arguments(trees.described(node), (Product) node);
        }
        return trees.found.toString();
    }

    /** Resolved trees, without what is inside of views; the fields of a node are those that judgements need. */
    public static String resolved(Seq roots) {
        Trees trees = new Trees();
        scala.collection.Iterator each = roots.iterator();
        while (each.hasNext()) trees.nodes.add(each.next());
        for (int i = 0; i < trees.nodes.size(); i++) {
            TreeNode node = (TreeNode) trees.nodes.get(i);
            ObjectNode fields = trees.described(node);
            if (!(node instanceof View)) fields.set("children", trees.value(node.children()));
            if (node.containsPattern(TreePattern.OUTER_REFERENCE())) fields.put("outer", true);
            if (node instanceof LogicalPlan) trees.plan(fields, (LogicalPlan) node);
            if (node instanceof Expression) trees.expression(fields, (Expression) node);
        }
        return trees.found.toString();
    }

    /** The columns that a plan gives, without the names of the tables that they came from. */
    public static Seq output(LogicalPlan plan) {
        List found = new ArrayList();
        scala.collection.Iterator each = plan.output().iterator();
        while (each.hasNext()) {
            found.add(((Attribute) each.next()).withQualifier((scala.collection.immutable.Seq) empty()));
        }
        return seq(found);
    }

    /** The first column of a name that a plan gives. */
    public static Attribute column(LogicalPlan plan, String name) {
        scala.collection.Iterator each = plan.output().iterator();
        while (each.hasNext()) {
            Attribute column = (Attribute) each.next();
            if (column.name().equals(name)) return column;
        }
        throw new IllegalStateException("there is no column " + name);
    }

    /** Named expressions, and those of others that are not among them. */
    public static Seq united(Seq wanted, Seq others) {
        List found = new ArrayList();
        Set known = new HashSet();
        Seq[] both = {wanted, others};
        for (int i = 0; i < both.length; i++) {
            scala.collection.Iterator each = both[i].iterator();
            while (each.hasNext()) {
                NamedExpression named = (NamedExpression) each.next();
                if (known.add(named.exprId()) || i == 0) found.add(named);
            }
        }
        return seq(found);
    }

    private static Seq seq(List items) {
        return scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq();
    }

    private static Seq empty() {
        return seq(new ArrayList());
    }

    /** Adds a node to the answer; its fields, which are still empty. */
    private ObjectNode described(TreeNode node) {
        ObjectNode made = this.found.addObject();
        made.put("class", name(node));
        Origin origin = node.origin();
        if (origin.line().isDefined() && origin.startPosition().isDefined()) {
            made.put("line", ((Integer) origin.line().get()).intValue());
            made.put("column", ((Integer) origin.startPosition().get()).intValue() + 1);
        }
        return made.putObject("fields");
    }

    private void plan(ObjectNode fields, LogicalPlan plan) {
        fields.set("expressions", this.value(plan.expressions()));
        if (plan instanceof View) {
            fields.put("table", ((View) plan).desc().identifier().table());
            fields.put("temporary", ((View) plan).isTempView());
        }
        if (plan instanceof Join) fields.put("kind", name(((Join) plan).joinType()));
        if (plan instanceof CTERelationRef) fields.put("cte", ((CTERelationRef) plan).cteId());
        if (plan instanceof CTERelationDef) fields.put("cte", ((CTERelationDef) plan).id());
    }

    private void expression(ObjectNode fields, Expression expression) {
        try {
            if (expression.resolved()) fields.put("type", expression.dataType().typeName());
        } catch (Exception error) {
            // Some parts of a window function are resolved, and have no type.
        }
        if (expression instanceof Cast) {
            Expression child = ((Cast) expression).child();
            boolean wider = Cast.canUpCast(child.dataType(), expression.dataType());
            fields.put("wider", wider);
        }
        if (expression instanceof SubqueryExpression) {
            fields.set("plan", this.value(((SubqueryExpression) expression).plan()));
            fields.set("outerAttrs", this.argument((Product) expression, "outerAttrs"));
        }
    }

    private void arguments(ObjectNode fields, Product product) {
        for (int i = 0; i < product.productArity(); i++) {
            fields.set(product.productElementName(i), this.value(product.productElement(i)));
        }
    }

    private JsonNode argument(Product product, String name) {
        for (int i = 0; i < product.productArity(); i++) {
            if (product.productElementName(i).equals(name)) return this.value(product.productElement(i));
        }
        throw new IllegalStateException(name(product) + " has no " + name);
    }

    /** A field: text, a flag, a list, a node, or other fields; null for what holds no node and is nothing of these. */
    private JsonNode value(Object item) {
        if (item == null) return NullNode.getInstance();
        if (item instanceof TreeNode) {
            this.nodes.add(item);
            return PlannedSource.JSON.createObjectNode().put("node", this.nodes.size() - 1);
        }
        if (item instanceof Boolean) return BooleanNode.valueOf(((Boolean) item).booleanValue());
        if (item instanceof String || item instanceof UTF8String || item instanceof Number) {
            return TextNode.valueOf(item.toString());
        }
        if (item instanceof Option) return this.list(((Option) item).iterator());
        if (item instanceof scala.collection.Iterable) return this.list(((scala.collection.Iterable) item).iterator());
        if (item instanceof Map) {
            ArrayNode keys = PlannedSource.JSON.createArrayNode();
            for (Iterator each = ((Map) item).keySet().iterator(); each.hasNext(); ) keys.add(each.next().toString());
            return keys;
        }
        // Types are products too, and deep ones; they hold no expression.
        if (item.getClass().getName().startsWith(TYPES) || !(item instanceof Product)) return NullNode.getInstance();
        ObjectNode fields = PlannedSource.JSON.createObjectNode();
        this.arguments(fields, (Product) item);
        return fields;
    }

    private ArrayNode list(scala.collection.Iterator items) {
        ArrayNode list = PlannedSource.JSON.createArrayNode();
        while (items.hasNext()) list.add(this.value(items.next()));
        return list;
    }

    private static String name(Object item) {
        String name = item.getClass().getName();
        while (name.endsWith("$")) name = name.substring(0, name.length() - 1);
        return name;
    }
}
